"""Original against rewritten kernels, in turns within one run: time on the GPU and of the launch call."""

import statistics
import time

from ..lab.lab import KERNELS, PREEMPTIBLE
from ..lab.samples import read_samples

# A program alone on the GPU has four times that.
ALONE_FROM_48_US = PREEMPTIBLE + "lab.latency_target_us = 12\n"
REWRITTEN = "rewritten"
# Sizes of the kernels that lose most.
SIZES = {
    "reduction": ("32000101", "64000101", "128000101", "256000101", "512000101"),
    "stencil2D": ("2001,4003,4", "4001,4003,4", "8001,4003,4", "8001,8003,4"),
    "convolution": ("6001,3003", "6001,6003", "12001,6003"),
    "fft": ("25000", "50000", "100000", "200000"),
    "spmv": ("300001,100", "600001,100"),
    "scan": ("64000003", "128000003"),
}


def see_rewritten(lab, programs):
    """Waits until the program in slice s, the last one, has run a block-task of a rewritten kernel. Raises RuntimeError
    if it ends before that: then its kernels stayed in their original form, and there is nothing to compare.
    """
    while not (lab.usage("s") or {}).get("block_tasks"):
        if programs[-1].process.poll() is not None:
            raise programs[-1].failure("its kernels were not rewritten")
        time.sleep(0.005)


def paired(lab, arguments, pairs, burst, kernel_us, check="last", rewritten=True):
    """Runs bursts of launches, plain and in slice s in turns. Returns for each pair the samples of both bursts, as
    lists of dicts. `rewritten`: it is an error if no block-task of the slice is done by a worker.
    """
    slot_ns = int(1000 * 1.5 * burst * kernel_us) + lab.size(15_000_000, 100_000_000)
    files = [lab.scratch / f"samples.{side}" for side in ("plain", "slice")]
    run = (
        *arguments,
        "--arrival",
        "bursts",
        "--burst",
        burst,
        "--period-us",
        2 * slot_ns / 1000,
        "--count",
        burst * pairs,
        "--check",
        check,
    )
    reports = lab.together(
        *((side, (*run, "--samples", file)) for side, file in zip((None, "s"), files)),
        apart_ns=slot_ns,
        meanwhile=(lambda programs: see_rewritten(lab, programs)) if rewritten else None,
    )
    if any(report["mismatches"] for report in reports):
        raise RuntimeError(f"{arguments}: wrong results")
    sides = []
    for file in files:
        samples = read_samples(file)
        sides.append([samples[at : at + burst] for at in range(0, len(samples), burst)])
    # A burst that ran into the other side's time is not counted.
    clean = [
        (plain, rewritten)
        for index, (plain, rewritten) in enumerate(zip(*sides))
        if plain[-1]["complete_ns"] < rewritten[0]["issue_ns"]
        and (index + 1 == pairs or rewritten[-1]["complete_ns"] < sides[0][index + 1][0]["issue_ns"])
    ]
    if 2 * len(clean) < pairs:
        raise RuntimeError(f"{arguments}: {pairs - len(clean)} of {pairs} pairs of bursts ran into each other")
    return clean


def gpu_us(samples):
    return statistics.median(sample["gpu_us"] for sample in samples[len(samples) // 5 :])  # the pipe fills first


def queue_us(samples):
    return (samples[-1]["complete_ns"] - samples[0]["issue_ns"]) / 1000 / len(samples)


def call_us(samples):
    return statistics.median(sample["issued_ns"] - sample["issue_ns"] for sample in samples) / 1000


def extent_for(lab, kernel, target_us):
    """The size at which a kernel takes about so long, as an option of gpuslice-bench."""
    if lab.options.rehearse:
        return ("--size", "trivial")
    if kernel == "work":
        report = lab.bench(None, kernel, "--task-us", 20, "--calibrate-us", target_us, "--count", 1, "--check", "none")
        return ("--extent", ",".join(map(str, report["extent"][:2])))
    report = lab.bench(None, kernel, "--size", "large", "--count", 10, "--depth", 2, "--check", "none")
    factor = target_us / report["gpu_us"]["p50"]
    numbers = [number for number in report["extent"] if number]
    factor **= 1 / len(numbers)  # of matrices each side
    return ("--extent", ",".join(str(min(1 << 30, round(number * factor))) for number in numbers))


def step_overhead(lab):
    """GPU time of kernels of 100 us and of 1 ms, original against rewritten by turns."""
    pairs = lab.size(15, 3)
    medians = []
    with lab.gpuctld(config=PREEMPTIBLE), lab.company():
        lab.gpuctl("create-slice", "s")
        for kernel in KERNELS:
            for target_us in lab.size((130, 1000), (10_000,)):
                arguments = (kernel, *extent_for(lab, kernel, target_us), "--depth", 4)
                bursts = paired(lab, arguments, pairs, lab.size(8000 // target_us, 4), lab.size(target_us, 60_000))
                ratios = sorted(gpu_us(rewritten) / gpu_us(plain) for plain, rewritten in bursts)
                queued = statistics.median(queue_us(rewritten) / queue_us(plain) for plain, rewritten in bursts)
                plain_us = statistics.median(gpu_us(plain) for plain, _ in bursts)
                medians.append(statistics.median(ratios))
                lab.record(kernel=kernel, plain_us=plain_us, ratios=ratios, queued=queued)
                yield (
                    f"{kernel}, {plain_us:.0f} us: rewritten / original, GPU time ({len(ratios)} pairs)",
                    "<= 1.02",
                    f"{medians[-1]:.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f}); {queued:.3f} of a queue's whole time",
                )
    yield ("all of them: rewritten / original, median", "<= 1.02", f"{statistics.median(medians):.3f}")


def step_suite(lab):
    """GPU time of every kernel of the suite at its large size, original against rewritten by turns."""
    with lab.gpuctld(config=PREEMPTIBLE), lab.company():
        yield from suite(lab)


def step_suite_alone(lab):
    """The same while nobody else is on the GPU, and chunks are longer; kernels of 48 us and more are rewritten all the
    same."""
    with lab.gpuctld(config=ALONE_FROM_48_US):
        yield from suite(lab)


def suite(lab):
    ratios = {}
    lab.gpuctl("create-slice", "s")
    for kernel in lab.kernels():
        try:
            plain_us, ratio, _ = plain_and_rewritten(
                lab, (kernel, "--size", lab.size("large", "trivial"), "--depth", 4)
            )
        except RuntimeError as error:  # of one kernel, which should not hide the others
            yield (f"{kernel}: NOT MEASURED", "", str(error)[:120])
            continue
        if plain_us >= 100:
            ratios[kernel] = ratio
        yield (
            f"{kernel}, {plain_us:.0f} us: rewritten / original, GPU time",
            "<= 1.05" if plain_us >= 100 else "",
            f"{ratio:.3f}",
        )
    yield (
        f"{len(ratios)} kernels of 100 us and more: geometric mean",
        "<= 1.01",
        f"{statistics.geometric_mean(ratios.values()):.3f}",
    )
    worst = max(ratios, key=ratios.get)
    yield ("the worst of them", "<= 1.05", f"{ratios[worst]:.3f} ({worst})")


def plain_and_rewritten(lab, arguments):
    """GPU time of a kernel plain, the ratio of rewritten to plain, and the difference in microseconds: medians of
    bursts in turns.
    """
    plain_us = lab.bench(None, *arguments, "--count", 5, "--check", "none")["gpu_us"]["p50"]
    burst = max(3, min(40, round(5000 / plain_us)))
    bursts = paired(lab, arguments, lab.size(7, 3), burst, plain_us, "none")
    times = [(gpu_us(plain), gpu_us(rewritten)) for plain, rewritten in bursts]
    return (
        statistics.median(plain for plain, _ in times),
        statistics.median(rewritten / plain for plain, rewritten in times),
        statistics.median(rewritten - plain for plain, rewritten in times),
    )


def step_sizes(lab):
    """What rewritten kernels lose at several sizes: how much of it is of the launch, how much of the work."""
    with lab.gpuctld(config=PREEMPTIBLE), lab.company():
        lab.gpuctl("create-slice", "s")
        for kernel, extents in SIZES.items():
            for extent in lab.size(extents, (extents[0],)):
                plain_us, ratio, more_us = plain_and_rewritten(
                    lab, (kernel, *lab.size(("--extent", extent), ("--size", "trivial")), "--depth", 4)
                )
                yield (
                    f"{kernel} {extent}, {plain_us:.0f} us: rewritten / original, GPU time",
                    "",
                    f"{ratio:.3f}, {more_us:+.1f} us",
                )


def launch_row(lab, name, target, iterations, rewritten=False):
    """What the launch call of a kernel of 8 blocks costs in slice s over plain."""
    arguments = ("work", "--blocks", 8, "--iterations", iterations, "--no-gpu-time", "--depth", 8)
    arguments += ("--warmup", lab.size(100, 2))
    kernel_us = lab.bench(None, *arguments[:5], "--count", 10)["gpu_us"]["p50"]
    bursts = paired(lab, arguments, lab.size(15, 3), lab.size(200, 5), max(10, kernel_us), rewritten=rewritten)
    plain = statistics.median(call_us(one) for one, _ in bursts)
    extra = sorted(call_us(other) - call_us(one) for one, other in bursts)
    lab.record(case=name, plain_us=plain, extra_us=extra)
    return (
        f"launch call {name}, over plain ({plain:.2f} us, {len(extra)} pairs)",
        target,
        f"{statistics.median(extra):+.2f} us ({extra[0]:+.2f} to {extra[-1]:+.2f})",
    )


def step_launch(lab):
    """CPU time of the launch call under gpuctl against plain by turns: while nothing is in force, below a max, and with
    workers in force, in original form and rewritten.
    """
    original = lab.size(20, 2)  # so few that the kernel is below the latency target
    with lab.gpuctld():
        lab.gpuctl("create-slice", "s")
        yield launch_row(lab, "while nothing is in force", "<= 0.2 us", original)
        lab.gpuctl("set", "s", f"max={lab.sms() * 3 // 4}")
        yield launch_row(lab, "in a part of the GPU, below a max", "<= 0.3 us", original)
    with lab.gpuctld(config=PREEMPTIBLE), lab.company():
        lab.gpuctl("create-slice", "s")
        if not lab.options.rehearse:
            yield launch_row(lab, "in its original form", "<= 0.3 us", original)
        yield launch_row(lab, REWRITTEN, "<= 2.5 us", lab.size(5000, 20), rewritten=True)
