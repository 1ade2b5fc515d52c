"""The programs of the matrix. LS: requests that arrive whether or not earlier ones are done. Batch: steps, one after
the other.

A synthetic program is corun-kernels with the sizes that calibration found alone on the GPU; the others need PyTorch.
"""

import dataclasses
import pathlib
import sys

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
MIB_PER_1024_BLOCKS = 4  # of each of the three arrays of the memory-bound kernels


@dataclasses.dataclass(frozen=True)
class Workload:
    """`sizes`: the arguments of calibrate. Otherwise `fixed` has the options of corun-kernels, or `program` is a Python
    program.
    """

    name: str
    description: str
    role: str  # ls or batch
    kernel: str = ""
    sizes: tuple = ()
    fixed: tuple = ()
    options: tuple = ()
    software: tuple = ()  # instead of all these, on the software GPU
    program: str = ""
    copies: int = 1
    together: tuple = ()  # of several different batch programs: their names, and nothing of the above
    reserve: float = 0.06  # the part of the SMs that an LS slice gets, where it gets any
    if_named: bool = False  # it is no row or column of the whole matrix

    @property
    def synthetic(self):
        return not self.program and not self.together

    def programs(self):
        """What is started, one for each program."""
        return [BATCH[name] for name in self.together] or [self] * self.copies

    def command(self, corun_kernels, size, priority, software):
        """The command of a program. `size`: calibrated blocks and iterations."""
        if self.program:
            return [sys.executable, PROGRAMS / self.program, *self.options, "--priority", priority]
        if software:
            options = self.software
        elif self.sizes:
            options = ("--blocks", size["blocks"], "--iterations", size["iterations"], *self.options)
        else:
            options = (*self.fixed, *self.options)
        return [corun_kernels, self.role, self.kernel, *options, "--priority", priority]


def blocks_of(mib):
    return mib * 1024 // MIB_PER_1024_BLOCKS


SOFT_LS = ("--blocks", 4, "--iterations", 20, "--period-us", 50_000, "--warm-ups", 2)
SOFT_BATCH = ("--blocks", 64, "--iterations", 50, "--warm-ups", 2)

LS = {
    workload.name: workload
    for workload in (
        Workload(
            "short",
            "64 blocks of 256 threads (8 SMs' worth), 50 us each wherever they run; Poisson, 500 a second",
            "ls",
            "spin",
            fixed=("--blocks", 64, "--iterations", 50_000),
            options=("--period-us", 2000),
            software=SOFT_LS,
        ),
        Workload(
            "rare",
            "as short, but 5 a second: idle for most of the time",
            "ls",
            "spin",
            fixed=("--blocks", 64, "--iterations", 50_000),
            options=("--period-us", 200_000),
            software=SOFT_LS,
            if_named=True,
        ),
        Workload(
            "fill",
            "one wave of blocks on all SMs, 300 us; Poisson, 250 a second",
            "ls",
            "compute",
            sizes=("--kernel-us", 300),
            options=("--period-us", 4000),
            reserve=0.5,
            software=SOFT_LS,
        ),
        Workload(
            "memory",
            "reads 128 MiB and writes 64 MiB; Poisson, 500 a second",
            "ls",
            "memory",
            fixed=("--blocks", blocks_of(64)),
            options=("--period-us", 2000),
            reserve=0.25,
            software=SOFT_LS,
        ),
        Workload(
            "decode",
            "a Llama-like model of 6 layers in PyTorch, eager, bf16; 4 tokens a request; Poisson, 15 a second",
            "ls",
            program="decode.py",
            reserve=0.25,
        ),
        Workload(
            "resnet",
            "ResNet-50 in PyTorch, fp16, batch 1, a CUDA graph; Poisson, 100 a second",
            "ls",
            program="resnet.py",
            reserve=0.25,
        ),
        Workload(
            "encoder",
            "an encoder of BERT-base's shape in PyTorch, fp16, 4 x 128 tokens, a CUDA graph; Poisson, 40 a second",
            "ls",
            program="encoder.py",
            reserve=0.18,
            if_named=True,
        ),
        Workload(
            "speech",
            "a speech model of Whisper-base's shape in PyTorch, fp16, eager, 4 tokens a request; Poisson, 15 a second",
            "ls",
            program="speech.py",
            reserve=0.18,
            if_named=True,
        ),
    )
}

BATCH = {
    workload.name: workload
    for workload in (
        Workload(
            "compute-10us",
            "kernels of 10 ms, blocks of 10 us, 4 launches ahead",
            "batch",
            "compute",
            sizes=("--block-us", 10, "--kernel-us", 10_000),
            software=SOFT_BATCH,
        ),
        Workload(
            "compute-100us",
            "kernels of 10 ms, blocks of 100 us, 4 launches ahead",
            "batch",
            "compute",
            sizes=("--block-us", 100, "--kernel-us", 10_000),
            software=SOFT_BATCH,
        ),
        Workload(
            "compute-5ms",
            "kernels of 10 ms, blocks of 5 ms, 4 launches ahead",
            "batch",
            "compute",
            sizes=("--block-us", 5000, "--kernel-us", 10_000),
            software=SOFT_BATCH,
        ),
        Workload(
            "memory-bound",
            "kernels that read 2 GiB and write 1 GiB, 4 launches ahead",
            "batch",
            "memory",
            fixed=("--blocks", blocks_of(1024)),
            software=SOFT_BATCH,
        ),
        Workload(
            "train",
            "a GPT-2-like model of 12 layers in PyTorch, 16 x 512 tokens, bf16 autocast, fused AdamW",
            "batch",
            program="train.py",
        ),
        Workload("matmul", "cuBLAS: ten products of 8192 x 8192 in bf16 a step", "batch", program="matmul.py"),
        Workload("triton", "Triton: a fused softmax of 8192 rows of 8192", "batch", program="fused_triton.py"),
        Workload(
            "eight",
            "eight programs of compute-100us at once",
            "batch",
            "compute",
            sizes=("--block-us", 100, "--kernel-us", 10_000),
            copies=8,
            software=SOFT_BATCH,
        ),
        Workload(
            "jax-train",
            "a transformer of 4 layers in JAX, 32 x 128 tokens, one compiled step",
            "batch",
            program="jax_train.py",
            if_named=True,
        ),
        Workload(
            "unet",
            "a small U-Net in PyTorch, eager: hundreds of short kernels a step",
            "batch",
            program="unet.py",
            if_named=True,
        ),
        Workload(
            "embedding",
            "a recommendation model of DLRM's shape in PyTorch, 26 tables of a million rows, 8192 examples a step",
            "batch",
            program="embedding.py",
            if_named=True,
        ),
        Workload(
            "two-train",
            "two programs of train at once",
            "batch",
            program="train.py",
            copies=2,
            if_named=True,
        ),
        Workload("two", "matmul and train at once", "batch", together=("matmul", "train"), if_named=True),
        Workload(
            "four",
            "matmul, train, unet and compute-100us at once",
            "batch",
            together=("matmul", "train", "unet", "compute-100us"),
            if_named=True,
        ),
    )
}
