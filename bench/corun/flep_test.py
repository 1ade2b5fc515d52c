"""Unit tests of the order in which FLEP's pairs are measured."""

import contextlib
import types
import unittest
from unittest import mock

from bench.corun import flep
from bench.corun.configurations import CONFIGURATIONS

LONGS = [types.SimpleNamespace(name=name, plain_ms=10.0) for name in ("NN", "PF")]
SHORTS = [types.SimpleNamespace(name=name, plain_ms=1.0) for name in ("NN", "MD", "VA")]
CHOSEN = [CONFIGURATIONS[name] for name in ("mps-stream", "ours-hpf")]


class FakeStage:
    def __init__(self):
        self.lab = types.SimpleNamespace(programs=[])
        self.daemons = []

    def enter_mode(self, mode):
        pass

    @contextlib.contextmanager
    def configured(self, configuration, reserve):
        self.daemons.append(configuration.name)
        yield


class FakeResults:
    def __init__(self):
        self.data, self.missing = {}, []

    def miss(self, ls, batch, configuration, numbers, reason, refused=False):
        self.missing.append((configuration.name, list(numbers), reason))

    def save(self):
        pass


class FakeMeeting:
    """Each pair of a group in each round."""

    def __init__(self, applications, longs, shorts):
        FakeMeeting.groups.append(([a.name for a in longs], [a.name for a in shorts]))
        self.pairs = [(a.name, b.name) for a in longs for b in shorts if a.name != b.name]

    def rounds(self, side, rounds):
        return [{pair: {"short": 1.0 + number, "both": 11.0} for pair in self.pairs} for number in range(rounds)]


class Flep(unittest.TestCase):
    def measure(self, pairs, quick, left_s=lambda: 1000):
        FakeMeeting.groups = []
        stage, results, said = FakeStage(), FakeResults(), []
        options = types.SimpleNamespace(pairs=pairs, quick=quick, rounds=2)
        with (
            mock.patch.object(flep, "prepare", return_value=(LONGS, SHORTS)),
            mock.patch.object(flep, "Applications", lambda lab: types.SimpleNamespace(wrong=0, configuration=None)),
            mock.patch.object(flep.meetings, "Meeting", FakeMeeting),
        ):
            flep.run(stage, results, options, CHOSEN, left_s, lambda one, numbers, count: said.append(count))
        return stage, results, said

    def test_all_programs_at_once_by_turns(self):
        stage, results, said = self.measure(flep.ALL, quick=False)
        self.assertEqual(stage.daemons, ["mps-stream", "ours-hpf"] * 2)
        self.assertEqual(FakeMeeting.groups, [(["NN", "PF"], ["NN", "MD", "VA"])] * 4)
        self.assertEqual(said, [5] * 4)
        self.assertEqual([one["round"] for one in results.data["flep"]["rounds"]], [0, 0, 1, 1])

    def test_two_programs_at_a_time_play_all_rounds_of_a_quick_run(self):
        stage, results, _ = self.measure(flep.TWO, quick=True)
        self.assertEqual(stage.daemons, ["mps-stream", "ours-hpf"])
        self.assertEqual(len(FakeMeeting.groups), 2 * 5, "no program meets itself")
        self.assertTrue(all(len(longs) == len(shorts) == 1 for longs, shorts in FakeMeeting.groups))
        at = results.data["flep"]["points"]["ours-hpf"]["PF_NN"]["short_ms"]
        self.assertEqual((at["median"], at["least"], at["greatest"]), (1.5, 1.0, 2.0))

    def test_what_there_was_no_time_for_is_missing_and_the_rest_stays(self):
        left = iter([1000, 1000, 0, 0])
        _, results, said = self.measure(flep.TWO, quick=True, left_s=lambda: next(left))
        self.assertEqual(said, [2, 0])
        self.assertEqual(
            results.missing, [("mps-stream", [0, 1], "no time left"), ("ours-hpf", [0, 1], "no time left")]
        )
        self.assertEqual(set(results.data["flep"]["points"]), {"mps-stream"})


if __name__ == "__main__":
    unittest.main()
