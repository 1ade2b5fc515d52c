# compat: CUDA tensors that go to a spawned process and come from it
# attached: 2
# modules: torch
import torch
import torch.multiprocessing


def other(inbox, outbox):
    held = inbox.get()
    held.mul_(3).add_(1)
    torch.cuda.synchronize()
    own = torch.arange(1000, dtype=torch.int64, device="cuda") * 7
    torch.cuda.synchronize()
    outbox.put(own)
    inbox.get()  # what a process has sent must stay until the other one has done with it
    del held, own


def main():
    context = torch.multiprocessing.get_context("spawn")
    inbox, outbox = context.Queue(), context.Queue()
    process = context.Process(target=other, args=(inbox, outbox))
    process.start()
    values = torch.arange(1 << 18, dtype=torch.int64, device="cuda")
    torch.cuda.synchronize()
    inbox.put(values)
    came = outbox.get()
    print("sent", values.sum().item(), "came", came.sum().item(), flush=True)
    del came
    inbox.put("done")
    process.join()
    print("status", process.exitcode)


if __name__ == "__main__":
    main()
