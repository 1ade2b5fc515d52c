# compat: Triton: element by element, atomics, a scan, a product of 8-bit whole numbers
# modules: torch triton numpy
import numpy
import torch
import triton
import triton.language as tl
from printed import check

ROUNDS = 60


@triton.jit
def mixed(left, right, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    value = tl.load(left + at, inside) * 3 + tl.load(right + at, inside)
    tl.store(out + at, (value & 0xFFFF) + tl.load(out + at, inside), inside)


@triton.jit
def counted(values, counts, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(counts + tl.load(values + at, at < count, 0), 1, at < count)


@triton.jit
def scanned(values, out, WIDTH: tl.constexpr):
    at = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    tl.store(out + at, tl.cumsum(tl.load(values + at), 0))


@triton.jit
def product(left, right, out, inner, columns, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, cols = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    sums = tl.zeros((M, N), dtype=tl.int32)
    for start in range(0, inner, K):
        depth = start + tl.arange(0, K)
        sums += tl.dot(
            tl.load(left + rows[:, None] * inner + depth[None, :]),
            tl.load(right + depth[:, None] * columns + cols[None, :]),
        )
    tl.store(out + rows[:, None] * columns + cols[None, :], sums)


def main():
    rng = numpy.random.default_rng(1)
    count = 300_001
    left, right = (rng.integers(0, 1000, count, dtype=numpy.int32) for _ in range(2))
    on_gpu = [torch.from_numpy(array).cuda() for array in (left, right)]
    sums = torch.zeros(count, dtype=torch.int32, device="cuda")
    for _ in range(ROUNDS):
        mixed[(triton.cdiv(count, 1024),)](*on_gpu, sums, count, BLOCK=1024)
    check("mixed", sums.cpu().numpy(), (left * 3 + right & 0xFFFF) * ROUNDS)

    counts = torch.zeros(1000, dtype=torch.int32, device="cuda")
    for _ in range(ROUNDS):
        counted[(triton.cdiv(count, 1024),)](on_gpu[0], counts, count, BLOCK=1024)
    check("counted", counts.cpu().numpy(), (numpy.bincount(left, minlength=1000) * ROUNDS).astype(numpy.int32))

    wide = rng.integers(0, 1000, (400, 2048), dtype=numpy.int32)
    source, scans = torch.from_numpy(wide).cuda(), torch.zeros((400, 2048), dtype=torch.int32, device="cuda")
    for _ in range(ROUNDS):
        scanned[(400,)](source, scans, WIDTH=2048)
    check("scanned", scans.cpu().numpy(), numpy.cumsum(wide, 1, dtype=numpy.int32))

    first, second = (rng.integers(-100, 100, shape, dtype=numpy.int8) for shape in ((512, 256), (256, 512)))
    operands = [torch.from_numpy(array).cuda() for array in (first, second)]
    out = torch.zeros((512, 512), dtype=torch.int32, device="cuda")
    for _ in range(ROUNDS):
        product[(8, 8)](*operands, out, 256, 512, M=64, N=64, K=32)
    check("product", out.cpu().numpy(), first.astype(numpy.int32) @ second.astype(numpy.int32))


if __name__ == "__main__":
    main()
