"""LS beside batch in slices, while gpuctld is killed and started again once a second, and while it is not, by turns."""

import contextlib
import os
import signal
import statistics
import threading

from ..lab.client import Connection
from .latency import batch_of, periodic_ls, reserve_of, sized_batch, sized_ls

ROUNDS = 3
EVERY_S = 1.0
WITHOUT, WITH = "it lives", "it is killed"
SECONDS = {WITHOUT: 20, WITH: 100}  # of a round: it is killed for five minutes in all


class Killer(threading.Thread):
    """Looks what the daemon has granted, and kills it, each so many seconds. None: never."""

    def __init__(self, lab, daemon, slices, every_s):
        super().__init__(daemon=True)
        self.every_s = every_s
        self.lab, self.daemon_program, self.slices = lab, daemon, slices
        self.over = threading.Event()
        self.killed, self.most_granted, self.failure = 0, 0, None

    def run(self):
        try:
            while not self.over.wait(self.every_s):
                self.look()
                self.kill()
        except (OSError, RuntimeError, ValueError, KeyError) as error:
            self.failure = error

    def kill(self):
        os.killpg(self.daemon_program.process.pid, signal.SIGKILL)
        self.daemon_program.process.wait()
        self.daemon_program = self.lab.start(None, *self.daemon_program.arguments, limit_s=self.daemon_program.limit_s)
        self.killed += 1

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
            raise RuntimeError(f"after {self.killed} daemons: {self.failure}")
        self.look()  # the next programs need one that answers
        return self.daemon_program


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
    with lab.gpuctld() as daemon:
        sms = lab.sms()
        reserve = reserve_of(sms)
        lab.gpuctl("create-slice", "ls", "--reserve", reserve, "--reserve-mode", "strict")
        lab.gpuctl("create-slice", "batch")
        ls_size, batch_size = sized_ls(lab, reserve), sized_batch(lab)
        for _ in range(lab.size(ROUNDS, 2)):
            for side in (WITHOUT, WITH):
                ls, batch = periodic_ls(lab, ls_size, seconds[side]), batch_of(batch_size, seconds[side])
                killer = Killer(lab, daemon, ("ls", "batch"), EVERY_S if side == WITH else None)
                try:
                    reports = lab.together(("ls", ls), ("batch", batch), meanwhile=lambda _: killer.start())
                finally:
                    daemon = killer.end()
                latencies.setdefault(side, []).append(reports[0]["latency_us"]["p99"])
                rates.setdefault(side, []).append(reports[1]["kernels_per_s"])
                wrong += sum(report["mismatches"] for report in reports)
                killed, most_granted = killed + killer.killed, max(most_granted, killer.most_granted)
    yield from rows(latencies, rates, wrong, killed, most_granted, sms)
