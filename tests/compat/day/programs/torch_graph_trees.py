# compat: torch.compile with CUDA graphs in a tree: a break in the middle, and branches that the data decides
# modules: torch numpy
import numpy
import torch
from printed import check

ROUNDS = 12


@torch.compile(mode="reduce-overhead", dynamic=False)
def walked(values, turn):
    values = (values * 5 + 7) & 0xFFFF
    torch._dynamo.graph_break()
    if turn % 3 == 0:
        values = (values + 11) & 0xFFFF
    else:
        values = (values * 3) & 0xFFFF
    torch._dynamo.graph_break()
    return values ^ 85


def main():
    start = numpy.random.default_rng(1).integers(0, 1000, 1 << 16)
    held, expected = torch.from_numpy(start).cuda(), start
    for turn in range(ROUNDS):
        torch.compiler.cudagraph_mark_step_begin()
        held = walked(held, turn % 3).clone()
        expected = (expected * 5 + 7) & 0xFFFF
        expected = ((expected + 11) if turn % 3 == 0 else (expected * 3)) & 0xFFFF
        expected = expected ^ 85
    check("walked", held.cpu().numpy(), expected)


if __name__ == "__main__":
    main()
