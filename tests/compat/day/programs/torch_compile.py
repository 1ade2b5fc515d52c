# compat: torch.compile in its default mode and with CUDA graphs: whole numbers, two shapes, a training
# modules: torch numpy
# args: default
# args: reduce-overhead
import sys

import numpy
import torch
from printed import about, check


def mixed(left, right):
    return ((left * 3 + right) & 0xFFFF).sum(1)


def whole_numbers(mode):
    function = torch.compile(mixed, mode=mode, dynamic=False)
    generator = numpy.random.default_rng(1)
    for rows in (64, 96, 64):
        left, right = (generator.integers(0, 1000, (rows, 1024)) for _ in range(2))
        for _ in range(4):
            sums = function(torch.from_numpy(left).cuda(), torch.from_numpy(right).cuda()).clone()
        check(f"sums of {rows}", sums.cpu().numpy(), ((left * 3 + right) & 0xFFFF).sum(1))


def training(mode):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 10))
    inputs, labels = torch.rand(256, 64).cuda(), torch.randint(0, 10, (256,)).cuda()
    model.cuda()
    compiled = torch.compile(model, mode=mode)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(12):
        torch.compiler.cudagraph_mark_step_begin()
        loss = torch.nn.functional.cross_entropy(compiled(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    about("loss", loss.item(), 0.005)


if __name__ == "__main__":
    torch.set_float32_matmul_precision("high")  # else it warns, where the GPU is told to be large enough
    whole_numbers(sys.argv[1])
    training(sys.argv[1])
