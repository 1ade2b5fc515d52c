#!/usr/bin/env python3
"""Print what demo.sh measured: demo_report.py SCRATCH DEVICE LIMIT. Ends with 3 when a result was wrong.

The round "managed" is two: until the limit was set, and from then on."""

import dataclasses
import json
import pathlib
import sys

ROUNDS = ("alone", "unmanaged", "priorities", "managed")


@dataclasses.dataclass
class Launch:
    issue_ns: int
    complete_ns: int


def percentile(values, percent):
    """By nearest rank, as gpuslice-bench does."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def rate(launches):
    """Kernels a second between the first and the last that completed; None where there are not two."""
    if len(launches) < 2:
        return None
    return (len(launches) - 1) * 1e9 / (launches[-1].complete_ns - launches[0].complete_ns)


class Report:
    def __init__(self, scratch):
        self.scratch = scratch
        self.limited_ns = int((scratch / "limited").read_text())
        self.ls, self.batch = {}, {}
        self.checked = self.wrong = 0
        for name in ROUNDS:
            for program, launches in (("ls", self.ls), ("batch", self.batch)):
                if (scratch / f"{name}-{program}.json").exists():
                    self.read(name, program, launches)

    def read(self, name, program, launches):
        result = json.loads((self.scratch / f"{name}-{program}.json").read_text())
        self.checked += result["checked"]
        self.wrong += result["mismatches"]
        rows = (self.scratch / f"{name}-{program}.samples").read_text().splitlines()[1:]
        launches[name] = [Launch(int(row.split()[1]), int(row.split()[3])) for row in rows]
        if name == "managed":
            # Kernels of batch run one after the other, so each that ends after another one ran under the limit alone.
            begun = (lambda one: one.complete_ns) if program == "batch" else (lambda one: one.issue_ns)
            launches["limited"] = [one for one in launches[name] if begun(one) > self.limited_ns]
            launches[name] = [one for one in launches[name] if one.complete_ns <= self.limited_ns]

    def latency(self, name, percent):
        latencies = [(one.complete_ns - one.issue_ns) / 1000 for one in self.ls[name]]
        return round(percentile(latencies, percent)) if latencies else None

    def rate(self, name):
        return rate(self.batch[name]) if name in self.batch else None


def text(value, form="d"):
    return "-" if value is None else format(value, form)


def main():
    report, device, limit = Report(pathlib.Path(sys.argv[1])), sys.argv[2], sys.argv[3]
    titles = {
        "alone": "LS alone",
        "unmanaged": "both, without gpuctl",
        "priorities": "both, with stream priorities",
        "managed": "both in slices, --priority 50",
        "limited": f"the same, after set {limit}",
    }
    print(f"{'':32} {'LS p50 us':>10} {'p99 us':>10} {'LS kernels':>11} {'batch kernels/s':>16}")
    for name, title in titles.items():
        print(
            f"{title:32} {text(report.latency(name, 50)):>10} {text(report.latency(name, 99)):>10} "
            f"{len(report.ls[name]):11d} {text(report.rate(name), '.2f'):>16}"
        )
    p99 = {name: text(report.latency(name, 99)) for name in titles}
    rates = {name: text(report.rate(name), ".2f") for name in titles}
    print(f"""
Beside batch, a kernel of LS took up to {p99["unmanaged"]} us (p99), and {p99["alone"]} us alone.
In a slice of greater priority it took {p99["managed"]} us beside {rates["managed"]} batch kernels a second, \
and neither program was changed; with stream priorities, which both must set, it was {p99["priorities"]} us \
beside {rates["priorities"]}.
`gpuctl set batch {limit}` took batch from {rates["managed"]} to {rates["limited"]} kernels a second while it ran, \
and LS to {p99["limited"]} us.
""")
    print(
        f"demo: device={device} alone_p99_us={p99['alone']} unmanaged_p99_us={p99['unmanaged']} "
        f"priorities_p99_us={p99['priorities']} priorities_batch={rates['priorities']} "
        f"managed_p99_us={p99['managed']} managed_batch={rates['managed']} "
        f"limited_p99_us={p99['limited']} limited_batch={rates['limited']} "
        f"checked={report.checked} mismatches={report.wrong}"
    )
    return 0 if report.wrong == 0 else 3


if __name__ == "__main__":
    sys.exit(main())
