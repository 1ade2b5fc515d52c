# compat: pinned memory and copies that do not block, in three streams, while kernels run
# modules: torch numpy
import numpy
import torch
from printed import check

PIECES, COUNT = 24, 1 << 18


def main():
    values = numpy.random.default_rng(1).integers(0, 1000, (PIECES, COUNT))
    source = torch.from_numpy(values).pin_memory()
    result = torch.empty((PIECES, COUNT), dtype=torch.int64).pin_memory()
    streams = [torch.cuda.Stream() for _ in range(3)]
    for number in range(PIECES):
        with torch.cuda.stream(streams[number % len(streams)]):
            held = source[number].to("cuda", non_blocking=True)
            for _ in range(10):
                held.mul_(5).add_(number).bitwise_and_(0xFFFF)
            result[number].copy_(held, non_blocking=True)
    torch.cuda.synchronize()
    expected = values
    for _ in range(10):
        expected = (expected * 5 + numpy.arange(PIECES)[:, None]) & 0xFFFF
    check("pieces", result.numpy(), expected)


if __name__ == "__main__":
    main()
