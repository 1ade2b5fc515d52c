"""A limit of time for a block of code, kept by SIGALRM. Main thread only; limits do not nest."""

import contextlib
import signal


class OutOfTime(Exception):
    """The limit is over. It is no RuntimeError, so steps that go on after a failure of one kernel let it through."""


@contextlib.contextmanager
def time_limit(seconds, what):
    """Raises OutOfTime in the block after `seconds` (whole, > 0). `what` has the limit, for the message."""

    def out_of_time(*_):
        raise OutOfTime(f"{what} ran past {seconds} s")

    before = signal.signal(signal.SIGALRM, out_of_time)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
