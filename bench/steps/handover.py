"""Where the time of a handover goes, between two programs whose kernels take turns: from one kernel's end to the next
one's start, and from the decision to evict a kernel to the other one's start. What the agents of both programs write
into their trace (GPUSLICE_DEBUG) is put together; its times are CLOCK_MONOTONIC, in microseconds.
"""

import re
import statistics
from typing import NamedTuple

from ..lab.lab import ALWAYS_REWRITTEN

SOON_US = 20_000  # what comes later belongs to another handover
CLOCK_US = 2  # times in the trace are whole microseconds


class Event(NamedTuple):
    at: float
    pid: int
    kind: str
    sms: int  # of a grant or an eviction
    us: float  # how long before `at` its cause was: the end of the kernel, or the decision


KINDS = {
    "over": re.compile(r" is over: seen (?P<us>-?\d+) us after its end$"),
    "granted": re.compile(r"granted (?P<sms>\d+) SMs (?P<us>\d+) us after the decision$"),
    "evicted": re.compile(r"eviction to (?P<sms>\d+) SMs took (?P<us>\d+) us$"),
    "sent": re.compile(r"adds \d+ workers to "),
}


def events(trace):
    """The events of a trace, in order. Lines about anything else are left out."""
    found = []
    for line in trace.splitlines():
        head = re.match(r"(\d+\.\d{6}) (\d+)/\d+ (.*)", line)
        for kind, pattern in KINDS.items() if head else ():
            if match := pattern.search(head[3]):
                numbers = match.groupdict()
                at = float(head[1]) * 1e6
                found.append(Event(at, int(head[2]), kind, int(numbers.get("sms", 0)), float(numbers.get("us", 0))))
    return sorted(found)


def first(found, kind, holds):
    """The first event of a kind for which this holds; None: there is none."""
    return next((event for event in found if event.kind == kind and holds(event)), None)


def ends(found, alone_us):
    """For each kernel that another program's follows: how long each part of the handover takes. A kernel began as long
    before its end as it takes alone.
    """
    parts = []
    for number, over in enumerate(found):
        if over.kind != "over":
            continue
        later = found[number + 1 :]
        granted = first(later, "granted", lambda e: e.pid != over.pid and e.sms > 0)
        if not granted or granted.at > over.at + SOON_US:
            continue
        sent, done = (
            first(later, kind, lambda e: e.pid == granted.pid and e.at >= granted.at) for kind in ("sent", "over")
        )
        if sent and done and sent.at < done.at:
            end, decided, began = over.at - over.us, granted.at - granted.us, done.at - done.us - alone_us
            parts.append(
                {
                    "its end to its agent's look": over.us,
                    "to the decision": decided - over.at,
                    "to the next agent's look": granted.us,
                    "to its workers' launch": sent.at - granted.at,
                    "to their start": began - sent.at,
                    "in all": began - end,
                }
            )
    return parts


def evictions(found):
    """The same for each kernel that is evicted for another program's, until that one's workers are launched. The other
    program may be granted its SMs while they are being left.
    """
    parts = []
    for evicted in (e for e in found if e.kind == "evicted"):
        decided = evicted.at - evicted.us
        granted = first(
            found,
            "granted",
            lambda e: e.pid != evicted.pid and e.sms > 0 and e.at - e.us >= decided - CLOCK_US,
        )
        if not granted:
            continue
        sent = first(found, "sent", lambda e: e.pid == granted.pid and e.at >= granted.at)
        if sent and sent.at < evicted.at + SOON_US:
            parts.append(
                {
                    "the SMs are free after": evicted.us,
                    "the other is granted them after": granted.at - granted.us - decided,
                    "to its agent's look": granted.us,
                    "to its workers' launch": sent.at - granted.at,
                    "free, and launched, after": max(sent.at, evicted.at) - decided,
                }
            )
    return parts


def in_words(parts):
    """The median of each part, with the range of its middle four fifths."""
    words = []
    for name in parts[0]:
        of_one = sorted(part[name] for part in parts)
        tenth = len(of_one) // 10
        words.append(f"{name} {statistics.median(of_one):.0f} ({of_one[tenth]:.0f} to {of_one[-1 - tenth]:.0f})")
    return "; ".join(words)


def traced(lab, policy, milliseconds, arrivals, apart_ns=0):
    """Two programs whose kernels take so long, the second one's launches so much later than the first one's. Returns
    their events and how long a kernel takes.
    """
    trace = lab.scratch / f"trace-{lab.started}"
    lab.gpuctl("set", "/", f"policy={policy}")
    sized = lab.bench(
        None, "work", "--task-us", 20, "--calibrate-us", 1000 * milliseconds, "--count", 3, "--check", "last"
    )
    kernel = ("work", "--extent", ",".join(map(str, sized["extent"][:2])), "--depth", 1, "--check", "last")
    alone = lab.bench("set", *kernel, "--count", lab.size(50, 3))
    with lab.environment(GPUSLICE_DEBUG=str(trace)):
        lab.together(*[("set", (*kernel, "--no-gpu-time", *arrivals))] * 2, apart_ns=apart_ns)
    return events(trace.read_text(encoding="utf-8", errors="replace")), alone["gpu_us"]["p50"]


def row(lab, name, parts):
    if not parts:
        raise RuntimeError(f"{name}: the trace shows none")
    lab.record(handover=name, parts=parts)
    return (f"{name}, us, {len(parts)} of them", "", in_words(parts))


def step_handover(lab):
    """Where the time goes between the kernels of two programs that take turns: at ends, and at evictions."""
    milliseconds, period_ms = lab.size((1, 5), (20, 200))
    # The program whose kernel ends launches no other one at once: that would have to be evicted first.
    periodic = ("--arrival", "periodic", "--period-us", 1000 * period_ms, "--count", lab.size(400, 10))
    long_ms, seconds = lab.size((10, 2), (40, 4))
    with lab.gpuctld(config=ALWAYS_REWRITTEN):
        lab.gpuctl("create-slice", "set")
        found, alone_us = traced(lab, "fcfs", milliseconds, periodic, apart_ns=int(0.2e6 * milliseconds))
        yield row(lab, "from an end to the next start", ends(found, alone_us))
        found, _ = traced(lab, "rr:quantum_ms=1", long_ms, ("--seconds", seconds))
        yield row(lab, "from a decision to evict", evictions(found))
