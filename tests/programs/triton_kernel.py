#!/usr/bin/env python3
"""Kernels in Triton: a softmax over rows, an element-wise update and a matrix product. triton_kernel.py ROUNDS
(rounds.py).

The first results are compared with PyTorch's; exit status 3 when they differ by more than rounding does.
"""

import sys

import rounds
import torch
import triton
import triton.language as tl

ROWS, COLUMNS = 16384, 2048
SIZE = 2048  # of the matrices, each way
TILE, DEPTH = 64, 32
ELEMENTS = 1024  # of a block in the element-wise kernel


@triton.jit
def softmax_rows(out, values, columns, COLUMNS: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, COLUMNS)
    inside = column < columns
    x = tl.load(values + row * columns + column, mask=inside, other=-float("inf"))
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(out + row * columns + column, x / tl.sum(x, axis=0), mask=inside)


@triton.jit
def decay_and_add(values, added, count, ELEMENTS: tl.constexpr):
    at = tl.program_id(0) * ELEMENTS + tl.arange(0, ELEMENTS)
    inside = at < count
    x = tl.load(values + at, mask=inside) * 0.75 + tl.load(added + at, mask=inside) * 64.0
    tl.store(values + at, x, mask=inside)


@triton.jit
def multiply_half_and_add(out, left, right, added, size, TILE: tl.constexpr, DEPTH: tl.constexpr):
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    column = tl.program_id(1) * TILE + tl.arange(0, TILE)
    sum_of = tl.zeros((TILE, TILE), dtype=tl.float32)
    for begin in range(0, size, DEPTH):
        inner = begin + tl.arange(0, DEPTH)
        a = tl.load(left + row[:, None] * size + inner[None, :])
        b = tl.load(right + inner[:, None] * size + column[None, :])
        sum_of += tl.dot(a, b)
    at = row[:, None] * size + column[None, :]
    tl.store(out + at, (sum_of * 0.5 + tl.load(added + at)).to(tl.float16))


class Kernels:
    def __init__(self):
        torch.manual_seed(2)
        self.values = torch.randn(ROWS, COLUMNS).cuda()
        self.weights = torch.empty_like(self.values)
        self.left = (torch.randn(SIZE, SIZE) / SIZE**0.5).cuda().half()
        self.right = torch.randn(SIZE, SIZE).cuda().half()
        self.added = torch.randn(SIZE, SIZE).cuda().half()
        self.product = torch.empty_like(self.left)
        self.totals = torch.zeros(2, dtype=torch.int64, device="cuda")  # of the bits of each round's results

    def step(self):
        softmax_rows[(ROWS,)](self.weights, self.values, COLUMNS, COLUMNS=COLUMNS)
        count = self.values.numel()
        decay_and_add[(triton.cdiv(count, ELEMENTS),)](self.values, self.weights, count, ELEMENTS=ELEMENTS)
        multiply_half_and_add[(SIZE // TILE, SIZE // TILE)](
            self.product, self.left, self.right, self.added, SIZE, TILE=TILE, DEPTH=DEPTH
        )
        self.right, self.product = self.product, self.right
        self.totals[0] += self.values.view(torch.int32).sum(dtype=torch.int64)
        self.totals[1] += self.right.view(torch.int16).sum(dtype=torch.int64)

    def check(self):
        """The first step, made by PyTorch too."""
        weights = torch.softmax(self.values, dim=1)
        values = self.values * 0.75 + weights * 64
        product = ((self.left.float() @ self.right.float()) * 0.5 + self.added.float()).half()
        self.step()
        torch.cuda.synchronize()
        right = (
            torch.allclose(self.weights, weights, rtol=1e-4, atol=1e-6)
            and torch.allclose(self.values, values, rtol=1e-4, atol=1e-4)
            and torch.allclose(self.right, product, rtol=2e-2, atol=2e-2)
        )
        if not right:
            print("triton_kernel: other results than PyTorch's", file=sys.stderr)
            sys.exit(3)

    def contents(self):
        return b"".join(
            tensor.cpu().numpy().tobytes() for tensor in (self.values, self.weights, self.right, self.totals)
        )


def main():
    kernels = Kernels()
    kernels.check()
    rounds.main("triton_kernel", kernels.step, torch.cuda.synchronize, kernels.contents)


if __name__ == "__main__":
    main()
