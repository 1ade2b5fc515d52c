"""The latency of a client that fits its reserve, alone and while batch runs."""

import statistics


def reserve_of(sms):
    return 8 if sms >= 64 else sms // 4


def sized_ls(lab, blocks):
    """The report of a program whose kernels are so many blocks, of about 50 us each."""
    return lab.bench(None, "work", "--blocks", blocks, "--calibrate-us", lab.size(50, 20_000), "--count", 20)


def periodic_ls(lab, sized, seconds):
    """Arguments of a program that launches a kernel of that size every 2 ms."""
    blocks, iterations = sized["extent"][:2]
    period_us = lab.size(2000, 100_000)
    arrival = ("--arrival", "periodic", "--period-us", period_us, "--priority", "high", "--seconds", seconds)
    return ("work", "--blocks", blocks, "--iterations", iterations, *arrival, "--check", "last")


def sized_batch(lab):
    """The report of a program whose kernels take about 10 ms, in blocks of 50 us."""
    task_us, kernel_us = lab.size((50, 10_000), (10_000, 200_000))
    return lab.bench(None, "work", "--task-us", task_us, "--calibrate-us", kernel_us, "--count", 5, "--check", "last")


def batch_of(sized, seconds):
    """Arguments of a program that launches kernels of that size back to back."""
    blocks, iterations = sized["extent"][:2]
    issue = ("--depth", 2, "--priority", "low", "--check", "last", "--seconds", seconds)
    return ("work", "--blocks", blocks, "--iterations", iterations, *issue)


def step_latency(lab):
    """LS that fits its reserve: alone, in its slice, beside batch unmanaged and in slices; batch; drift."""
    seconds = lab.size(4.2, 3)
    with lab.gpuctld():
        sms = lab.sms()
        reserve = reserve_of(sms)
        ls_size = sized_ls(lab, reserve)
        batch_size = sized_batch(lab)
        iterations = ls_size["extent"][1]
        arrival = (
            "--arrival",
            "periodic",
            "--period-us",
            lab.size(2000, 100_000),
            "--priority",
            "high",
            "--seconds",
            seconds,
        )
        ls = ("work", "--blocks", reserve, "--iterations", iterations, *arrival)
        full = ("work", "--blocks", 8 * reserve, "--iterations", iterations, *arrival)
        batch = batch_of(batch_size, seconds)
        lab.gpuctl("create-slice", "ls", "--reserve", reserve, "--reserve-mode", "strict")
        lab.gpuctl("create-slice", "batch")
        lab.gpuctl("create-slice", "full", "--max", reserve)
        yield (
            f"LS {ls_size['gpu_us']['p50']:.0f} us; batch {batch_size['gpu_us']['p50'] / 1000:.1f} ms, "
            f"{batch_size['extent'][0]} block-tasks",
            "",
            f"reserve {reserve} of {sms} SMs",
        )
        found = {}
        for number in range(1, lab.size(2, 1) + 1):
            for name, runs in (
                ("LS alone", [(None, ls)]),
                ("LS alone in its slice", [("ls", ls)]),
                ("batch alone", [(None, batch)]),
                ("LS beside batch, unmanaged", [(None, ls), (None, batch)]),
                ("LS beside batch, in slices", [("ls", ls), ("batch", batch)]),
                ("LS alone again", [(None, ls)]),
            ):
                yield latency_row(lab, found, number, name, runs)
            # Eight blocks for each reserved SM: the slice may use only its reserve, even alone.
            lab.gpuctl("set", "ls", "reserve=0")
            lab.gpuctl("set", "full", f"reserve={reserve}")
            for name, runs in (
                ("full LS alone in its slice", [("full", full)]),
                ("full LS beside batch, in slices", [("full", full), ("batch", batch)]),
            ):
                yield latency_row(lab, found, number, name, runs)
            lab.gpuctl("set", "full", "reserve=0")
            lab.gpuctl("set", "ls", f"reserve={reserve}")
    yield from latency_ratios(found, sms, reserve)


def latency_row(lab, found, number, name, runs):
    reports = lab.together(*runs)
    words = []
    for (_, arguments), report in zip(runs, reports):
        if "periodic" in arguments:
            found.setdefault(name, []).append(report["latency_us"])
            at = report["latency_us"]
            words.append(f"p50 {at['p50']:.0f}, p99 {at['p99']:.0f}, max {at['max']:.0f} us (n={report['launches']})")
        else:
            found.setdefault(f"{name}: rate", []).append(report["kernels_per_s"])
            words.append(f"batch {report['kernels_per_s']:.1f} kernels/s")
        found["wrong"] = found.get("wrong", 0) + report["mismatches"]
    return (f"round {number}: {name}", "", "; ".join(words))


def latency_ratios(found, sms, reserve):
    def p99(*names):
        return statistics.median(latency["p99"] for name in names for latency in found[name])

    def rate(name):
        return statistics.median(found[f"{name}: rate"])

    alone = p99("LS alone", "LS alone again")
    yield ("LS p99 in slices / alone", "<= 1.1", f"{p99('LS beside batch, in slices') / alone:.2f}")
    yield (
        "LS p99 in slices / alone in its slice",
        "",
        f"{p99('LS beside batch, in slices') / p99('LS alone in its slice'):.2f}",
    )
    yield ("LS p99 unmanaged / alone", "", f"{p99('LS beside batch, unmanaged') / alone:.2f}")
    yield (
        "full LS p99 in slices / alone in its slice",
        "<= 1.1",
        f"{p99('full LS beside batch, in slices') / p99('full LS alone in its slice'):.2f}",
    )
    kept = rate("LS beside batch, in slices") / rate("batch alone")
    yield ("batch in slices / its share of batch alone", ">= 0.90", f"{kept * sms / (sms - reserve):.3f}")
    yield (
        "batch in slices / unmanaged",
        "",
        f"{rate('LS beside batch, in slices') / rate('LS beside batch, unmanaged'):.3f}",
    )
    yield ("wrong results", "0", str(found["wrong"]))
