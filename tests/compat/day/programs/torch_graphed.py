# compat: CUDA graphs in PyTorch: graphed callables in a training, and two graphs that share a pool
# modules: torch numpy
import numpy
import torch
from printed import about, check

ROUNDS = 30


def training():
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    inputs, labels = torch.rand(256, 64).cuda(), torch.randint(0, 10, (256,)).cuda()
    graphed = torch.cuda.make_graphed_callables(model.cuda(), (inputs.clone(),))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(ROUNDS):
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(graphed(inputs), labels)
        loss.backward()
        optimizer.step()
    about("loss", loss.item(), 0.005)


def shared_pool():
    values = numpy.random.default_rng(1).integers(0, 1000, 1 << 16)
    held = torch.from_numpy(values).cuda()
    held.mul_(5).add_(7).bitwise_and_(0xFFFF)
    held.mul_(3).bitwise_xor_(85)
    torch.cuda.synchronize()
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        held.mul_(5).add_(7).bitwise_and_(0xFFFF)
    with torch.cuda.graph(second, pool=first.pool()):
        held.mul_(3).bitwise_xor_(85).bitwise_and_(0xFFFF)
    held.copy_(torch.from_numpy(values))
    expected = values
    for _ in range(ROUNDS):
        first.replay()
        second.replay()
        expected = (((expected * 5 + 7) & 0xFFFF) * 3 ^ 85) & 0xFFFF
    check("two graphs", held.cpu().numpy(), expected)


if __name__ == "__main__":
    training()
    shared_pool()
