"""LS beside batch in slices, while gpuctld is killed and started again once a second, and while it is not, by turns.

The requests of LS are also told apart by how long ago the latest kill was: the next daemon starts at once.
"""

import bisect
import contextlib
import os
import signal
import statistics
import threading
import time

from ..lab.client import Connection
from ..lab.samples import read_samples
from .latency import batch_of, periodic_ls, reserve_of, sized_batch, sized_ls

ROUNDS = 3
EVERY_S = 1.0
WITHOUT, WITH = "it lives", "it is killed"
SECONDS = {WITHOUT: 20, WITH: 100}  # of a round: it is killed for five minutes in all
AFTER_MS = (50, 200)  # since the latest kill: up to so long, up to so long, later


class Killer(threading.Thread):
    """Looks what the daemon has granted, and kills it, each so many seconds. None: never."""

    def __init__(self, lab, daemon, slices, every_s):
        super().__init__(daemon=True)
        self.every_s = every_s
        self.lab, self.daemon_program, self.slices = lab, daemon, slices
        self.over = threading.Event()
        self.kills_ns, self.most_granted, self.failure = [], 0, None

    def run(self):
        try:
            while not self.over.wait(self.every_s):
                self.look()
                self.kill()
        except (OSError, RuntimeError, ValueError, KeyError) as error:
            self.failure = error

    def kill(self):
        self.kills_ns.append(time.monotonic_ns())
        os.killpg(self.daemon_program.process.pid, signal.SIGKILL)
        self.daemon_program.process.wait()
        self.daemon_program = self.lab.start(None, *self.daemon_program.arguments, limit_s=self.daemon_program.limit_s)

    def look(self):
        connection = self.lab.wait_for(self.connect, "gpuctld")
        with contextlib.closing(connection):
            granted = [(connection.usage(path) or {}).get("granted", 0) for path in self.slices]
        self.most_granted = max(self.most_granted, sum(granted))

    def connect(self):
        try:
            return Connection(self.lab.env["GPUCTL_SOCKET"])
        except OSError:
            return None

    def end(self):
        """The daemon that runs now. RuntimeError: something went wrong meanwhile."""
        self.over.set()
        if self.ident:  # it was started
            self.join()
        if self.failure:
            raise RuntimeError(f"after {len(self.kills_ns)} daemons: {self.failure}")
        self.look()  # the next programs need one that answers
        return self.daemon_program


def by_time_since(kills_ns, launches):
    """Latencies in us of the launches that were issued after a kill, in lists by AFTER_MS."""
    found = [[] for _ in range(len(AFTER_MS) + 1)]
    for launch in launches:
        kills = bisect.bisect_right(kills_ns, launch["issue_ns"])
        if kills:
            since_ms = (launch["issue_ns"] - kills_ns[kills - 1]) / 1e6
            found[bisect.bisect_right(AFTER_MS, since_ms)].append((launch["complete_ns"] - launch["issue_ns"]) / 1000)
    return found


def p99_by_time_since(latencies):
    """A row of the table, of the lists that by_time_since() returns."""
    first, second = AFTER_MS
    measured = [
        f"{sorted(of_one)[(99 * len(of_one) - 1) // 100]:.0f} us (n={len(of_one)})" if of_one else "-"
        for of_one in latencies
    ]
    return f"LS p99 up to {first} ms after a kill; up to {second} ms; later", "", "; ".join(measured)


def rows(latencies, rates, wrong, killed, most_granted, sms):
    """`latencies`: p99 of LS in us, `rates`: batch kernels a second, by whether the daemon was killed, by round."""
    p99, rate = ({side: statistics.median(values) for side, values in found.items()} for found in (latencies, rates))
    for side in (WITHOUT, WITH):
        spread = f"{min(latencies[side]):.0f} to {max(latencies[side]):.0f}"
        yield (f"LS p99, batch, while {side}", "", f"{p99[side]:.0f} us ({spread}); {rate[side]:.2f} kernels/s")
    yield (f"LS p99 while {WITH} / while {WITHOUT}", "<= 1.05", f"{p99[WITH] / p99[WITHOUT]:.3f}")
    yield (f"batch while {WITH} / while {WITHOUT}", "", f"{rate[WITH] / rate[WITHOUT]:.3f}")
    yield ("daemons killed", "", str(killed))
    yield ("SMs granted at most, as each daemon says before it is killed", f"<= {sms}", str(most_granted))
    yield ("wrong results", "0", str(wrong))


def step_killed(lab):
    """LS beside batch while gpuctld is killed once a second."""
    seconds = lab.size(SECONDS, {WITHOUT: 4, WITH: 4})
    latencies, rates, wrong, killed, most_granted = {}, {}, 0, 0, 0
    since, samples = by_time_since([], []), lab.scratch / "killed-ls"
    with lab.gpuctld() as daemon:
        sms = lab.sms()
        reserve = reserve_of(sms)
        lab.gpuctl("create-slice", "ls", "--reserve", reserve, "--reserve-mode", "strict")
        lab.gpuctl("create-slice", "batch")
        ls_size, batch_size = sized_ls(lab, reserve), sized_batch(lab)
        for _ in range(lab.size(ROUNDS, 2)):
            for side in (WITHOUT, WITH):
                ls = (*periodic_ls(lab, ls_size, seconds[side]), "--samples", samples)
                batch = batch_of(batch_size, seconds[side])
                killer = Killer(lab, daemon, ("ls", "batch"), EVERY_S if side == WITH else None)
                try:
                    reports = lab.together(("ls", ls), ("batch", batch), meanwhile=lambda _: killer.start())
                finally:
                    daemon = killer.end()
                latencies.setdefault(side, []).append(reports[0]["latency_us"]["p99"])
                rates.setdefault(side, []).append(reports[1]["kernels_per_s"])
                wrong += sum(report["mismatches"] for report in reports)
                killed, most_granted = killed + len(killer.kills_ns), max(most_granted, killer.most_granted)
                for all_rounds, round_ in zip(since, by_time_since(killer.kills_ns, read_samples(samples))):
                    all_rounds += round_
    yield from rows(latencies, rates, wrong, killed, most_granted, sms)
    yield p99_by_time_since(since)
