#!/usr/bin/env python3
"""A matrix product in Triton, which uses wgmma on Hopper. triton_matmul.py [--size N] ROUNDS (rounds.py); blocks take
long, by N.

The first result is compared with PyTorch's; exit status 3 when it differs by more than rounding does.
"""

import sys

import rounds
import torch
import triton
import triton.language as tl

SIZE = int(sys.argv[2]) if sys.argv[1:2] == ["--size"] else 8192  # of the matrices, each way
ROWS, COLUMNS, DEPTH = 128, 256, 64  # of a block


@triton.jit
def multiply(out, left, right, size, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    sum_of = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for begin in range(0, size, DEPTH):
        inner = begin + tl.arange(0, DEPTH)
        sum_of += tl.dot(
            tl.load(left + row[:, None] * size + inner[None, :]),
            tl.load(right + inner[:, None] * size + column[None, :]),
        )
    tl.store(out + row[:, None] * size + column[None, :], sum_of.to(tl.float16))


class Product:
    """The right matrix of each round is the product of the one before; the left one keeps the lengths of columns."""

    def __init__(self):
        torch.manual_seed(3)
        self.left = (torch.randn(SIZE, SIZE) / SIZE**0.5).cuda().half()
        self.right = torch.randn(SIZE, SIZE).cuda().half()
        self.product = torch.empty_like(self.left)

    def step(self):
        multiply[(SIZE // ROWS, SIZE // COLUMNS)](
            self.product,
            self.left,
            self.right,
            SIZE,
            ROWS=ROWS,
            COLUMNS=COLUMNS,
            DEPTH=DEPTH,
            num_warps=8,
            num_stages=3,
        )
        self.right, self.product = self.product, self.right

    def check(self):
        """The first round, made by PyTorch too."""
        expected = self.left @ self.right
        self.step()
        torch.cuda.synchronize()
        if not torch.allclose(self.right, expected, rtol=2e-2, atol=2e-2):
            print("triton_matmul: another product than PyTorch's", file=sys.stderr)
            sys.exit(3)

    def contents(self):
        return self.right.cpu().numpy().tobytes()


def main():
    product = Product()
    product.check()
    rounds.main("triton_matmul", product.step, torch.cuda.synchronize, product.contents)


if __name__ == "__main__":
    main()
