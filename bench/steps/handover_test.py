"""Tests of how the trace of two programs is put together."""

import unittest

from bench.steps.handover import ends, events, evictions, in_words

TRACE = """\
9.000000 1/1 context managed: device 0, 132 SMs
10.001010 7/70 work is over: seen 10 us after its end
10.001050 8/80 granted 132 SMs 20 us after the decision
10.001055 7/70 granted 0 SMs 25 us after the decision
10.001065 8/80 adds 100 workers to work: 0 of 1 left, allowed on 132 SMs
10.002080 8/80 work is over: seen 5 us after its end
11.000060 7/70 eviction to 0 SMs took 40 us
11.000100 8/80 granted 132 SMs 15 us after the decision
11.000108 8/80 adds 100 workers to work: 0 of 1 left, allowed on 132 SMs
"""


class HandoverTest(unittest.TestCase):
    def setUp(self):
        self.found = events(TRACE)

    def test_lines_about_anything_else_are_left_out(self):
        self.assertEqual(len(self.found), 8)
        self.assertEqual([e.pid for e in self.found][:3], [7, 8, 7])

    def test_from_an_end_to_a_start(self):
        (parts,) = ends(self.found, alone_us=1000)
        self.assertEqual(
            {name: round(us) for name, us in parts.items()},
            {
                "its end to its agent's look": 10,
                "to the decision": 20,
                "to the next agent's look": 20,
                "to its workers' launch": 15,
                "to their start": 10,
                "in all": 75,
            },
        )

    def test_from_an_eviction_to_the_others_workers(self):
        (parts,) = evictions(self.found)
        self.assertEqual([round(us) for us in parts.values()], [40, 65, 15, 8, 88])

    def test_the_other_may_be_granted_sms_that_are_being_left(self):
        early = TRACE.replace("11.000100 8/80 granted 132 SMs 15", "11.000030 8/80 granted 132 SMs 10")
        (parts,) = evictions(events(early.replace("11.000108", "11.000038")))
        self.assertEqual([round(us) for us in parts.values()], [40, 0, 10, 8, 40])

    def test_in_words(self):
        parts = [{"in all": us} for us in (1, 50, 51, 52, 53, 54, 55, 56, 57, 900)]
        self.assertEqual(in_words(parts), "in all 54 (50 to 57)")


if __name__ == "__main__":
    unittest.main()
