import contextlib
import io
import signal
import unittest
from unittest import mock

from bench import measure
from bench.lab.time_limit import OutOfTime, time_limit
from bench.steps import overhead, programs, storms


class TimeLimit(unittest.TestCase):
    def test_the_alarm_ends_the_block(self):
        with self.assertRaisesRegex(OutOfTime, "the step ran past 60 s"), time_limit(60, "the step"):
            signal.raise_signal(signal.SIGALRM)

    def test_no_alarm_is_left(self):
        before = signal.getsignal(signal.SIGALRM)
        with time_limit(60, "the step"):
            self.assertGreater(signal.getitimer(signal.ITIMER_REAL)[0], 0)
        self.assertEqual(signal.getitimer(signal.ITIMER_REAL), (0.0, 0.0))
        self.assertIs(signal.getsignal(signal.SIGALRM), before)


def alarm(*_, **__):
    signal.raise_signal(signal.SIGALRM)


class Steps(unittest.TestCase):
    """A step that goes on with the next kernel after a failure of one ends when its own time is over."""

    def setUp(self):
        self.lab = mock.MagicMock()
        self.lab.kernels.return_value = ["vector_add", "reduce"]
        self.lab.size.side_effect = lambda full, _: full
        self.lab.options.rehearse = False

    def ends(self, rows):
        with self.assertRaises(OutOfTime), time_limit(60, "the step"):
            list(rows)

    def test_overhead(self):
        with mock.patch.object(overhead, "plain_and_rewritten", alarm):
            self.ends(overhead.suite(self.lab))

    def test_storms(self):
        with mock.patch.object(storms, "storm", alarm):
            self.ends(storms.step_storms(self.lab))

    def test_a_program(self):
        self.ends(programs.or_failed(mock.Mock(), map(alarm, range(2))))

    def test_the_table_says_so(self):
        table = mock.Mock()
        step = mock.Mock(side_effect=alarm, __doc__="A step.")
        with mock.patch.dict(measure.STEPS, {"some": (step, 60)}), contextlib.redirect_stderr(io.StringIO()):
            self.assertFalse(measure.run_step(self.lab, "some", table))
        table.add.assert_called_with("some: FAILED: the step ran past 60 s")


if __name__ == "__main__":
    unittest.main()
