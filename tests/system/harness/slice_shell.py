"""Talks to tests/driver/slice_shell: a CUDA program, linked with libgpuslice, that does what it is told line by
line."""

import collections
import time

from tests.system.harness import instance

Grant = collections.namedtuple("Grant", "code capsm demand holding priority")
Record = collections.namedtuple("Record", "block start_ns sm runs")

# A launch for 10 s on all SMs, if the program is not told to finish: blocks of 20 ms, 8 at a time on an SM.
LONG = (32_000 * instance.SLOWER, 200)
LOOK_S = 0.3


class SliceShell(instance.Conversation):
    """Runs until the end of the test. Started by itself, or by `command`, to which its path is appended."""

    def __init__(self, test, command=(), **environment):
        super().__init__(test, [*command, instance.DRIVER_PROGRAMS / "slice_shell"], {**test.env, **environment})
        self.scratch = test.scratch

    def code(self, *words):
        return int(self.ask(*words).split()[0])

    def grant(self, device=0):
        return Grant(*map(int, self.ask("grant", device).split()))

    def do(self, *words):
        answer = self.ask(*words)
        if answer != "ok":
            raise AssertionError(f"{words}: {answer}")

    def records(self, stream):
        """Where and when each block of the latest launch on a stream ran, of those that have begun."""
        path = self.scratch / f"records-{stream}"
        self.do("records", stream, path)
        return [Record(*map(int, line.split())) for line in path.read_text().splitlines()]

    def finish(self, *streams):
        """Ends the kernels. Of those launched with LONG on these streams, each block has run once."""
        self.do("finish")
        for stream in streams:
            runs = {record.block: record.runs for record in self.records(stream)}
            wrong = [f"block {block}: {runs.get(block, 0)}" for block in range(LONG[0]) if runs.get(block) != 1]
            if wrong:
                raise AssertionError(f"{len(wrong)} blocks did not run once: {', '.join(wrong[:20])}")

    def wait_running_on(self, *expected, tolerated=frozenset()):
        """Until the blocks that streams 0, 1, ... begin run on just these SMs, and perhaps on those tolerated. Each
        stream runs a launch with LONG, or none.
        """
        found = []

        def running_on():
            looks = [self.look(stream) for stream in range(len(expected))]
            found[:] = [sms for _, sms in looks]
            if any(begun == LONG[0] for begun, _ in looks):
                raise AssertionError(f"a kernel has ended, the streams ran on {found} instead of {expected}")
            return all(sms >= least and sms - least <= tolerated for sms, least in zip(found, expected))

        instance.wait_until(running_on, f"the streams to run on {expected}", told=lambda: f"They run on {found}.")

    def look(self, stream):
        """How many blocks of a stream have begun after some time from now, and on which SMs in that time (LOOK_S)."""
        start = time.monotonic_ns()
        time.sleep(LOOK_S)
        records = self.records(stream)
        return len(records), {record.sm for record in records if record.start_ns >= start}

    def sms_now(self, stream):
        """On which SMs blocks of a stream begin now."""
        return self.look(stream)[1]
