"""What the suite's kernels take of an SM: SiM's Figure 2 (share of its registers, threads and shared memory in use) and
8b (registers of the rewritten form over the original's), and SMGuard's Figure 2 (how many SMs matrixMul could fill).

The daemon tells registers of both forms, and how many workers an SM holds (Explain); it also tells the blocks and
threads of each launch (Record). Nothing reports shared memory. It is what the kernel's PTX declares. The shares are
those of the rewritten form, with as many workers as an SM holds. What the hardware and gpuctl take of the shared memory
for each block is left out. The software GPU holds as many workers whatever their registers.
"""

import collections
import contextlib
import dataclasses
import re
import statistics
import time

from ..lab.lab import ALWAYS_REWRITTEN
from ..lab.modes import gpus
from ..lab.recording import Recording
from .sim_pairs import KERNELS as SIM

WARP_THREADS, WARP_REGISTERS_UNIT = 32, 256
SIDES = (512, 1024, 2048, 4096, 8192)  # of matrixMul's square matrices
REHEARSED = (("matrixMul", "lavaMD", "particleFilter"), (48, 96))
BEGIN_NOTHING_AFTER_S = 420
NAMED_WITHIN_S = 3  # the daemon looks for names once a second


@dataclasses.dataclass
class Sm:
    """What one SM has: registers of 32 bits, threads, bytes of shared memory."""

    registers: int
    threads: int
    shared: int


SMS = {"90": Sm(65536, 2048, 228 * 1024)}  # by compute capability; the software GPU's is the same


@dataclasses.dataclass
class Kernel:
    """One kernel of a benchmark, in rewritten form."""

    benchmark: str
    name: str
    original: int  # registers of a thread
    registers: int
    per_sm: int  # workers that one SM holds
    blocks: int  # of its greatest launch
    threads: int  # of a block
    shared: int | None  # bytes of a block; None: not known
    ran_us: float  # of all launches that were seen

    @property
    def more_registers(self):
        """Part of the original's."""
        return self.registers / self.original - 1

    @property
    def sms(self):
        """How many SMs its blocks could fill."""
        return self.blocks / self.per_sm


def declared_shared(ptx):
    """Bytes of shared memory that each kernel of a PTX text declares or uses, by name; without dynamic ones."""
    sizes = {}
    for width, name, count in re.findall(
        r"^\s*(?!\.extern).*?\.shared .*?\.[bfsu](\d+) (\w+)(?:\[(\d+)\])?;", ptx, re.M
    ):
        sizes[name] = int(width) // 8 * int(count or 1)
    bodies = re.findall(r"^\.visible \.entry (\w+)\((.*?)^\}", ptx, re.M | re.S)
    return {
        kernel: sum(size for name, size in sizes.items() if re.search(rf"\b{re.escape(name)}\b", body))
        for kernel, body in bodies
    }


def in_use(kernel, sm):
    """Shares of an SM's registers, threads and shared memory (None: not known) while it holds all the workers it can.
    Registers are given out warp by warp.
    """
    warps = kernel.per_sm * -(-kernel.threads // WARP_THREADS)
    of_warp = -(-kernel.registers * WARP_THREADS // WARP_REGISTERS_UNIT) * WARP_REGISTERS_UNIT
    shared = None if kernel.shared is None else kernel.per_sm * kernel.shared / sm.shared
    return warps * of_warp / sm.registers, warps * WARP_THREADS / sm.threads, shared


def percents(shares):
    return ", ".join("not shown" if share is None else f"{100 * share:.0f} %" for share in shares)


def main_kernels(kernels):
    """Of each benchmark the kernel that ran longest in all, by benchmark."""
    return {kernel.benchmark: kernel for kernel in sorted(kernels, key=lambda kernel: kernel.ran_us)}


def rows(kernels, sm):
    """SiM's figures. `sm`: None if nothing is known of the GPU's."""
    for one in kernels:
        said = f"; {percents(in_use(one, sm))}" if sm else ""
        yield (
            f"{one.benchmark}, {one.name}: registers; registers, threads, shared memory in use",
            "",
            f"{one.original} -> {one.registers} ({100 * one.more_registers:+.0f} %){said} "
            f"({one.per_sm} workers of {one.threads} threads)",
        )
    mains = main_kernels(kernels)
    for what, names in (("SiM's", SIM), ("the suite's", mains)):
        known = [mains[name] for name in names if name in mains]
        if not known:
            continue
        most = max(known, key=lambda kernel: kernel.more_registers)
        yield (
            f"Figure 8b, {what} benchmarks: registers over the original's, mean of {len(known)}; most",
            "<= +23 %" if names is SIM else "",
            f"{100 * statistics.mean(kernel.more_registers for kernel in known):+.0f} %; "
            f"{100 * most.more_registers:+.0f} % ({most.benchmark})",
        )
    if sm and any(name in mains for name in SIM):
        said = (f"{name} {percents(in_use(mains[name], sm))}" for name in SIM if name in mains)
        yield ("SiM's Figure 2: registers, threads, shared memory of an SM in use", "", "; ".join(said))


def fill_rows(kernels):
    """SMGuard's figure. `kernels`: matrixMul's, by the side of its matrices."""
    for side, kernel in kernels.items():
        yield (
            f"SMGuard's Figure 2, matrixMul of {side} x {side}: SMs that it could fill",
            "",
            f"{kernel.sms:.0f} ({kernel.blocks} blocks, {kernel.per_sm} on an SM)",
        )


def rewritten(entry):
    return entry["form"] == "persistent" and entry["per_sm"] > 0


def kernels_of(benchmark, explained, launches, shared):
    """The rewritten kernels of a benchmark. `explained`: the daemon's kernels of its program, `launches`: its launches,
    `shared`: bytes of a block's shared memory that the PTX declares, by kernel.
    """
    of_kernel = collections.defaultdict(list)
    for launch in launches:
        of_kernel[launch["kernel"]].append(launch)
    found = []
    for entry in explained:
        name = entry["name"]
        if not rewritten(entry) or name not in of_kernel:
            continue
        widest = max(of_kernel[name], key=lambda launch: launch["blocks"])
        of_block = shared[name] + widest["shared_bytes"] if name in shared else None
        ran_us = sum(launch["ran_us"] for launch in of_kernel[name])
        registers = entry["registers_original"], entry["registers"]
        shape = entry["per_sm"], widest["blocks"], widest["threads"]
        found.append(Kernel(benchmark, name, *registers, *shape, of_block, ran_us))
    return found


def explain(lab, benchmark, size):
    """Runs a benchmark. Returns its pid and what the daemon says of its kernels once all of them have run."""
    options = ("--check", "none", "--count", 1, "--no-gpu-time", "--start-on-input")
    program = lab.start_bench("s", benchmark, *size, *options)
    program.wait_ready()  # two warm-up runs are over, but the daemon may not have heard of them
    client = lab.call("GetSlice", path="s")["clients"][0]

    def heard():
        kernels = lab.call("Explain", pid=client["pid"])["kernels"]
        return sum(one["launches"] for one in kernels) >= client["usage"][0]["launches"] and kernels

    kernels = lab.wait_for(heard, f"the kernels of {benchmark}")
    wanted = {(one["module"], one["name"]) for one in kernels if rewritten(one)}

    def named():
        return wanted <= {(one["module"], one["name"]) for one in lab.call("ListKernels")["kernels"]}

    with contextlib.suppress(RuntimeError):  # of a kernel without a name in the record a row says so
        lab.wait_for(named, "names", NAMED_WITHIN_S)
    program.begin(time.monotonic_ns())  # these launches have names in the record
    program.report()
    return client["pid"], kernels


def step_occupancy(lab):
    """SiM's Figures 2 and 8b and SMGuard's Figure 2: registers, threads and shared memory of an SM in use."""
    began = time.monotonic()
    shared = {}
    for path in (lab.build / "kernels").glob("*.ptx"):
        shared |= declared_shared(path.read_text(encoding="utf-8"))
    benchmarks, sides = lab.size((lab.kernels(), SIDES), REHEARSED)
    runs = [(benchmark, None, ("--size", lab.size("large", "trivial"))) for benchmark in benchmarks]
    runs += [("matrixMul", side, ("--extent", f"{side},{side},{lab.size(side, 8)}")) for side in sides]
    explained = {}
    with lab.gpuctld(config=ALWAYS_REWRITTEN):
        lab.gpuctl("create-slice", "s")
        recording = Recording(lab.env["GPUCTL_SOCKET"])
        for benchmark, side, size in runs:
            if time.monotonic() - began > BEGIN_NOTHING_AFTER_S:
                yield (f"{benchmark}: NOT MEASURED", "", "no time left")
                continue
            try:
                explained[benchmark, side] = explain(lab, benchmark, size)
            except RuntimeError as error:  # of one kernel, which should not hide the others
                yield (f"{benchmark}: NOT MEASURED", "", str(error)[:120])
        launches = recording.end()
    kernels, filling = [], {}
    for (benchmark, side), (pid, entries) in explained.items():
        of_program = [launch for launch in launches if launch["pid"] == pid]
        found = kernels_of(benchmark, entries, of_program, shared)
        for entry in entries if side is None else ():
            if entry["name"] not in [kernel.name for kernel in found]:
                why = f"{entry['form']}; {entry['reason']}"
                yield (f"{benchmark}, {entry['name']}: NOT MEASURED", "", why[:120])
        if side is None:
            kernels += found
        elif found:
            filling[side] = found[0]
        lab.record(benchmark=benchmark, side=side, kernels=[dataclasses.asdict(kernel) for kernel in found])
    capability = "90" if lab.options.rehearse else (gpus() or ("",))[0]
    yield from rows(kernels, SMS.get(capability))
    yield from fill_rows(filling)
