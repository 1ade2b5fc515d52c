# compat: torchrun with one rank (NCCL) and with two on one GPU (gloo): gradients are the mean of all ranks
# modules: torch
# args: 1 nccl
# args: 2 gloo
# output: unordered
import os
import sys

import torch
import torch.distributed
from printed import about

LAUNCH = ("--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--local-addr", "127.0.0.1", "--nproc-per-node")


def worker(backend):
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    torch.distributed.init_process_group(backend)
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    values = torch.arange(1 << 16, dtype=torch.int64, device="cuda") * (rank + 1)
    torch.distributed.all_reduce(values)
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 10).cuda())
    inputs = torch.rand(ranks, 128, 64)[rank].cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
    norm = sum(parameter.detach().square().sum() for parameter in model.parameters()).item()
    if rank == 0:
        print("ranks", ranks, "sum", values.sum().item(), flush=True)
        about("weights", norm, 0.01)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def launch(ranks, backend):
    os.environ.update(GLOO_SOCKET_IFNAME="lo", NCCL_SOCKET_IFNAME="lo")
    run = [sys.executable, "-m", "torch.distributed.run", *LAUNCH, ranks, os.path.abspath(__file__), "worker", backend]
    os.execv(sys.executable, run)


if __name__ == "__main__":
    worker(sys.argv[2]) if sys.argv[1] == "worker" else launch(*sys.argv[1:3])
