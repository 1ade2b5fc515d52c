"""Guarded kernels: the cost of looking and claiming for each of their blocks, and the gain for a latency-critical
client.
"""

import statistics
import time

from .programs import Case, Run, explain, guarded, over_plain, python, take_turns

SIZES = {
    1024: 5000,
    2048: 1500,
    4096: 300,
    8192: 40,
}  # of triton_matmul.py, which says how long blocks take: rounds at a time
SECONDS = 5


def product(size, guard):
    """Runs triton_matmul, guarded or not."""
    return Case(
        "triton_matmul",
        0,
        ("torch", "triton"),
        python("triton_matmul.py", "--size", str(size)),
        {"GPUSLICE_GUARD": guard},
    )


def step_guard(lab):
    """triton_matmul guarded: time over plain by length of block-tasks; LS beside it. Needs Triton and a GPU."""
    if lab.options.rehearse or product(0, "").lacks():
        raise RuntimeError("no Triton, or no GPU")
    with lab.gpuctld(), lab.company():
        sms = lab.sms()
        lab.gpuctl("create-slice", "s")
        for size, rounds in SIZES.items():
            yield from guarded(product(size, ""), cost(lab, size, rounds))
    for how, ls_settings, policy in (
        ("half the GPU lent", ("--reserve", sms // 2, "--reserve-mode", "lend"), "share"),
        ("hpf", ("--priority", 1), "hpf"),
    ):
        with lab.gpuctld():
            yield from beside(lab, how, ls_settings, policy)


def cost(lab, size, rounds):
    sides = {}
    try:
        for side, slice_path in (("plain", None), ("slice", "s")):
            sides[side] = Run(lab, product(size, "always"), side, slice_path)
            sides[side].first_result_s()
        for run in sides.values():
            run.run(rounds)
        bursts = take_turns(sides, rounds, 7)
        kernel = next(kernel for kernel in explain(lab, "s", f"guard-{size}") if kernel["name"] == "multiply")
        same = len({run.finish() for run in sides.values()}) == 1
    finally:
        for run in sides.values():
            run.end()
    plain_us = statistics.median(plain for plain, _ in bursts) / rounds * 1e6
    lab.record(size=size, rounds=rounds, bursts_s=bursts, kernel=kernel)
    yield (
        f"size {size}: {plain_us:.0f} us, block-tasks of {kernel['block_task_ns'] / 1000:.1f} us, "
        f"{kernel['form']}; over plain ({len(bursts)} pairs)",
        "",
        f"{over_plain(bursts)}; results {'the same' if same else 'DIFFER'}",
    )


def beside(lab, how, ls_settings, policy):
    """LS that would fill the GPU, at the same time as triton_matmul."""
    sms = lab.sms()
    sized = lab.bench(None, "work", "--blocks", sms, "--calibrate-us", 50, "--count", 20)
    ls = (
        "work",
        "--blocks",
        8 * sms,
        "--iterations",
        sized["extent"][1],
        "--arrival",
        "periodic",
        "--period-us",
        20_000,
        "--priority",
        "high",
        "--seconds",
        SECONDS,
        "--check",
        "last",
    )
    lab.gpuctl("create-slice", "ls", *ls_settings)
    lab.gpuctl("create-slice", "batch")
    lab.gpuctl("set", "/", f"policy={policy}")
    for slice_path in (None, "ls"):
        alone = lab.bench(slice_path, *ls)["latency_us"]
        yield (
            f"{how}: LS alone, {'in its slice' if slice_path else 'plain'}",
            "",
            f"p50 {alone['p50']:.0f}, p99 {alone['p99']:.0f} us",
        )
    for name, ls_slice, batch_slice, guard in (
        ("unmanaged", None, None, ""),
        ("opaque", "ls", "batch", ""),
        ("guarded", "ls", "batch", "1"),
    ):
        run = Run(lab, product(8192, guard), "slice", batch_slice)
        try:
            run.first_result_s()
            run.run(200)
            program = lab.start_bench(ls_slice, *ls, "--start-on-input")
            program.wait_ready()
            began = time.monotonic()
            program.begin(time.monotonic_ns() + 50_000_000)
            rounds = seconds = 0
            while time.monotonic() < began + SECONDS:
                seconds += run.run(50)
                rounds += 50
            report = program.report()
            usage = lab.usage("batch") if batch_slice else None
            run.finish()
        finally:
            run.end()
        lab.record(how=how, side=name, usage=usage)
        at = report["latency_us"]
        yield (
            f"{how}: LS beside triton_matmul, {name}",
            "",
            f"p50 {at['p50']:.0f}, p99 {at['p99']:.0f} us; batch {rounds / seconds:.1f} products/s"
            + (f", {usage['evictions']} evictions, mean {usage['evict_us_mean']:.0f} us" if usage else ""),
        )
