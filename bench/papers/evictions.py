"""EffiSha's Figure 9: how often kernels of each priority are evicted under piv, by the wait time between launches.

The eleven kernels of tests/workloads/effisha-evictions-*.toml start at once, with their durations. Each is launched
again a wait time after its launch has ended, with a priority that is drawn for each launch, as a priority hint. The
paper has 1000 launches of each kernel, this step fewer; its numbers are scaled.
"""

import bisect
import collections
import tomllib

from ..lab.recording import Recording
from ..lab.samples import read_samples
from .effisha import WORKLOADS
from .effisha_figures import REHEARSED
from .kernels import EFFISHA
from .schedulers import Schedulers

WAITS_MS = (1, 3, 4, 8, 64)
PRIORITIES = (1, 9)
LAUNCHES, OF_THE_PAPER = 400, 1000
POLICY = "piv"


def by_priority(issued, launches):
    """Evictions and launches by priority. `issued`: of one program, (instant before the launch call, instant at which
    the launch was complete, priority), by time. `launches`: what the daemon said of the program's launches.
    """
    evictions, count = collections.Counter(), collections.Counter()
    instants = [instant for instant, _, _ in issued]
    for launch in launches:
        at = bisect.bisect_right(instants, launch["issued_ns"]) - 1
        if at < 0 or launch["issued_ns"] > issued[at][1]:
            continue  # before the measured ones, or the one that is checked after them
        priority = issued[at][2]
        evictions[priority] += launch["evictions"]
        count[priority] += 1
    return evictions, count


def rows(found, scale=1.0):
    """`found`: evictions by priority, by wait time in ms."""
    for wait_ms, evictions in found.items():
        numbers = ", ".join(
            f"{scale * evictions.get(priority, 0):.0f}" for priority in range(PRIORITIES[0], PRIORITIES[1] + 1)
        )
        yield (f"Figure 9, wait {wait_ms} ms: evictions at priority 1 to 9", "falls to 0", numbers)
    totals = ", ".join(f"{wait_ms} ms {scale * sum(evictions.values()):.0f}" for wait_ms, evictions in found.items())
    yield ("Figure 9: evictions by wait time", "falls", totals)


def measure(schedulers, wait_ms):
    """Evictions by priority."""
    lab = schedulers.lab
    text = (WORKLOADS / f"effisha-evictions-{wait_ms}ms.toml").read_text(encoding="utf-8")
    kernels = [one for one in tomllib.loads(text)["application"] if lab.size(True, one["name"] in REHEARSED)]
    count = lab.size(LAUNCHES, 12)
    options = ("--arrival", "apart", "--period-us", schedulers.ms(wait_ms) * 1000, "--count", count)
    hints = ("--hints", ",".join(map(str, PRIORITIES)))
    recording = Recording(lab.env["GPUCTL_SOCKET"])
    programs = schedulers.start(
        [
            (
                one["name"],
                schedulers.application(one["name"], one["alone_ms"], EFFISHA[one["name"]]),
                (*options, *hints, "--seed", number + 1),
            )
            for number, one in enumerate(kernels)
        ]
    )
    schedulers.finish(programs, schedulers.begin(programs, [0] * len(programs)))
    launches = recording.end()
    evictions, known = collections.Counter(), collections.Counter()
    for one, (_, samples) in zip(kernels, programs):
        issued = [tuple(row[name] for name in ("issue_ns", "complete_ns", "hint")) for row in read_samples(samples)]
        of_one = by_priority(issued, [launch for launch in launches if launch["slice"] == one["name"]])
        evictions += of_one[0]
        known += of_one[1]
    lab.record(wait_ms=wait_ms, launches=known, evictions=evictions, of=count * len(kernels))
    return evictions, known.total() / (count * len(kernels))


def step_evictions(lab):
    """EffiSha's Figure 9: evictions by priority and wait time under piv."""
    with lab.gpuctld():
        schedulers = Schedulers(lab)
        schedulers.calibrate()
        text = (WORKLOADS / f"effisha-evictions-{WAITS_MS[0]}ms.toml").read_text(encoding="utf-8")
        for one in tomllib.loads(text)["application"]:
            lab.gpuctl("create-slice", one["name"], "--priority", PRIORITIES[1])
        lab.gpuctl("set", "/", f"policy={POLICY}")
        found, known = {}, []
        for wait_ms in lab.size(WAITS_MS, (1, 8)):
            found[wait_ms], part = measure(schedulers, wait_ms)
            known.append(part)
        yield from rows(found, OF_THE_PAPER / lab.size(LAUNCHES, 12))
        yield ("launches that the daemon described, at least", "100 %", f"{100 * min(known):.1f} %")
        yield ("wrong results", "0", str(schedulers.wrong))
