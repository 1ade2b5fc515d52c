"""Tests of configurations with changes."""

import unittest

from bench.corun.configurations import CONFIGURATIONS, RESERVE, OfSms, with_changes


class ConfigurationsTest(unittest.TestCase):
    def test_a_name_alone_is_the_configuration(self):
        self.assertIs(with_changes("ours-strict"), CONFIGURATIONS["ours-strict"])

    def test_keys_of_the_daemon_and_another_reserve(self):
        changed = with_changes("ours-strict:reserve=0.125:reserve_by_parts=false")
        self.assertEqual(changed.name, "ours-strict:reserve=0.125:reserve_by_parts=false")
        self.assertEqual(changed.daemon, ("lab.reserve_by_parts = false",))
        self.assertIn(OfSms(0.125), changed.ls_slice)
        self.assertNotIn(RESERVE, changed.ls_slice)
        self.assertIn(RESERVE, CONFIGURATIONS["ours-strict"].ls_slice)

    def test_keys_of_the_shipped_file_are_the_daemons(self):
        changed = with_changes("ours-priority:always_preemptible=true:latency_target_us=1")
        self.assertEqual(changed.daemon, ("daemon.always_preemptible = true", "lab.latency_target_us = 1"))
        self.assertEqual(with_changes("ours-strict:weight=1").daemon, ("lab.weight = 1",))

    def test_a_slice_with_a_target_begins_isolated_so_that_it_shares_its_start_with_isolated_ones(self):
        starts = {name: CONFIGURATIONS[name].started_as() for name in CONFIGURATIONS}
        self.assertEqual(starts["auto-2x"], starts["isolated-priority"])
        self.assertEqual(starts["auto-2x"], starts["auto-1.3x"])
        self.assertNotEqual(starts["ours-latency-2x"], starts["auto-2x"])
        self.assertNotEqual(starts["ours-latency-2x"], starts["ours-priority"])

    def test_what_cannot_be_changed_is_said(self):
        for name, words in (
            ("mps-90:reserve=0.1", "no gpuctld"),
            ("ours-priority:reserve=0.1", "no reserve"),
            ("ours-strict:reserve=2", "at most 1"),
            ("ours-strict:reserve=x", "a part of the SMs"),
            ("ours-strict:reserve", "write :KEY=VALUE"),
        ):
            with self.assertRaisesRegex(ValueError, words):
                with_changes(name)


if __name__ == "__main__":
    unittest.main()
