"""Batch: cuBLAS products of square matrices in bf16, ten a step. Each kernel holds all SMs while it runs."""

from harness import Program

PRODUCTS = 10
WARM_UPS = 3


def main():
    program = Program()
    torch = program.torch
    size = program.size(8192, 64)
    left, right, out = (torch.randn(size, size, device=program.device).to(torch.bfloat16) for _ in range(3))

    def step():
        for _ in range(PRODUCTS):
            torch.mm(left, right, out=out)

    with torch.inference_mode(), program.stream():
        for _ in range(WARM_UPS):
            step()
        program.run_steps(step)


if __name__ == "__main__":
    main()
