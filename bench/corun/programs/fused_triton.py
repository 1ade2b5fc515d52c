"""Batch: a Triton program that fuses scale, softmax and residual over 8192 rows of 8192, one block a row, with twenty
launches a step.
"""

from harness import Program, need

LAUNCHES = 20
WARM_UPS = 3
ROWS, COLUMNS = 8192, 8192

program = Program()
torch = program.torch
triton = need("triton")
import triton.language as tl  # noqa: E402


@triton.jit
def softmax(source, residual, out, scale, WIDTH: tl.constexpr):
    at = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    row = tl.load(source + at).to(tl.float32) * scale
    powers = tl.exp(row - tl.max(row, 0))
    tl.store(out + at, powers / tl.sum(powers, 0) + tl.load(residual + at).to(tl.float32))


def main():
    if not program.gpu:
        raise SystemExit("fused_triton.py: needs a GPU")
    source, residual, out = (torch.randn(ROWS, COLUMNS, device="cuda", dtype=torch.bfloat16) for _ in range(3))

    def step():
        for _ in range(LAUNCHES):
            softmax[(ROWS,)](source, residual, out, 0.125, WIDTH=COLUMNS, num_warps=8)

    with program.stream():
        for _ in range(WARM_UPS):
            step()
        program.run_steps(step)


if __name__ == "__main__":
    main()
