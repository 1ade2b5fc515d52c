# compat: a Triton kernel whose block size is tuned at its first launch
# modules: torch triton numpy
import numpy
import torch
import triton
import triton.language as tl
from printed import check


@triton.autotune(
    [triton.Config({"BLOCK": size}, num_warps=warps) for size, warps in ((256, 2), (1024, 4))], key=["count"]
)
@triton.jit
def mixed(left, right, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(out + at, (tl.load(left + at, inside) * 3 + tl.load(right + at, inside)) & 0xFFFF, inside)


def main():
    rng = numpy.random.default_rng(1)
    for count in (300_001, 70_003):
        left, right = (rng.integers(0, 1000, count, dtype=numpy.int32) for _ in range(2))
        out = torch.zeros(count, dtype=torch.int32, device="cuda")
        on_gpu = [torch.from_numpy(array).cuda() for array in (left, right)]
        for _ in range(20):
            mixed[lambda chosen, count=count: (triton.cdiv(count, chosen["BLOCK"]),)](*on_gpu, out, count)
        check(f"mixed {count}", out.cpu().numpy(), (left * 3 + right) & 0xFFFF)


if __name__ == "__main__":
    main()
