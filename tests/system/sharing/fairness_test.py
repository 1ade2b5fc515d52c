"""ANTT, DNTT and STP while programs run: what the daemon says follows from the launches that it records."""

import math
import statistics
import sys
import time

from bench.lab.client import Varlink
from tests.system.harness import instance

SECOND = 1_000_000_000
WINDOW_S = 10
ENDLESS = ("--count", 1000000, "--announce", "--warmup", 0, "--check", "all")
TOGETHER = 6  # launches of one burst


class Bursts:
    """The definitions, once more: what a program's launches, in the order of their ends, come to."""

    def __init__(self, launches, oldest_second):
        self.turnaround = self.alone = self.bursts = 0
        self.slowdowns = []
        self.oldest_second = oldest_second
        first = last = work = previous = 0
        goes_on = False
        for launch in launches:
            issued, done, alone = launch["issued_ns"], launch["done_ns"], launch["alone_us"] * 1000
            if self.counts(done):
                # Two may be seen to end at once, or in another order than that in which they were told.
                arrived = max(issued, previous) if previous < done else issued
                self.slowdowns.append((done - arrived) / alone)
            if issued > last:  # nothing was outstanding
                self.close(first, last, work, goes_on)
                first, work, goes_on = issued, 0, False
            last, previous, work = max(last, done), max(previous, done), work + alone
            if last - first >= SECOND:
                self.close(first, last, work, goes_on)
                first, work, goes_on = last, 0, True
        self.close(first, last, work, goes_on)

    def counts(self, instant):
        return instant // SECOND >= self.oldest_second

    def close(self, first, last, work, goes_on):
        if work > 0 and self.counts(last):
            self.turnaround += last - first
            self.alone += work
            self.bursts += not goes_on

    @property
    def ntt(self):
        return self.turnaround / self.alone


class Fairness(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.start_daemon()
        self.gpuctl("set", "/", "policy=rr:quantum_ms=20")
        for name in ("many", "one", "one/below"):
            self.gpuctl("create-slice", name)

    def record(self):
        """A stream of what ends from now on."""
        stream = Varlink(self.socket, instance.PATIENCE_S)
        self.addCleanup(stream.close)
        stream.send("Record", {}, more=True)
        self.assertEqual(stream.receive()["parameters"], {"launches": [], "lost": 0})
        return stream

    def figures(self, path):
        """The figures, and the oldest second that they are of. Both are of the same second."""

        def within_one_second():
            began = time.monotonic_ns() // SECOND
            found = self.call("GetFairness", path=path)["fairness"]
            return (found, began - WINDOW_S) if time.monotonic_ns() // SECOND == began else None

        return instance.wait_until(within_one_second, "an answer within a second")

    def assertFollow(self, path, launches):
        """The figures of a slice follow from the launches of each program in and below it."""
        found, oldest_second = self.figures(path)
        print(f"{path}: {found}", file=sys.stderr)
        of_each = {}
        for launch in launches:
            if path in ("/", launch["slice"]) or launch["slice"].startswith(path + "/"):
                of_each.setdefault(launch["pid"], []).append(launch)
        programs = [Bursts(of_one, oldest_second) for of_one in of_each.values()]
        slowdowns = [one for program in programs for one in program.slowdowns]
        counted = [program for program in programs if program.bursts]
        ntts = [program.ntt for program in counted]
        self.assertEqual(
            (found["slice"], found["seconds"], found["programs"], found["bursts"], found["launches"]),
            (path, WINDOW_S, len(counted), sum(program.bursts for program in counted), len(slowdowns)),
        )
        expected = {
            "antt": statistics.mean(ntts),
            "dntt": statistics.pstdev(ntts),
            "stp": sum(1 / ntt for ntt in ntts),
            "worst": max(ntts),
            "launch_antt": statistics.mean(slowdowns),
            "launch_dntt": statistics.pstdev(slowdowns),
            "launch_worst": max(slowdowns),
        }
        for name, value in expected.items():
            self.assertTrue(
                math.isclose(found[name], value, rel_tol=1e-4, abs_tol=1e-4), f"{name}: {found}, {expected}"
            )
        return found

    def test_figures_follow_from_the_launches(self):
        stream = self.record()
        many = self.start_bench("many", "work", "--blocks", 16, "--iterations", 4, *ENDLESS)
        many.wait_started()
        together = ("--depth", TOGETHER, "--count", TOGETHER, "--warmup", 0, "--check", "all")
        one = self.start_bench("one/below", "work", "--blocks", 64, "--iterations", 4, *together)
        reports = {"one/below": one.report()}
        shown = self.gpuctl("top", "--once").stdout
        reports["many"] = many.stop()
        for report in reports.values():
            self.assertRightResults(report)
        launches = []
        while len(launches) < sum(report["launches"] for report in reports.values()):
            launches += stream.receive()["parameters"]["launches"]
        for name, report in reports.items():
            self.assertEqual(sum(launch["slice"] == name for launch in launches), report["launches"])
        found = {path: self.assertFollow(path, launches) for path in ("/", "many", "one", "one/below")}

        self.assertEqual(found["one"], {**found["one/below"], "slice": "one"})
        self.assertEqual(found["/"]["programs"], 2)
        # All launches of this program were there at once: they are one application, and each waited behind another.
        self.assertEqual((found["one"]["programs"], found["one"]["bursts"]), (1, 1))
        self.assertEqual(found["one"]["launches"], TOGETHER)
        self.assertGreater(found["one"]["antt"], 1)
        self.assertEqual(found["one"]["dntt"], 0)
        self.assertGreater(found["many"]["bursts"], 1)

        self.assertIn("ANTT", shown.splitlines()[2])
        lines = self.gpuctl("show", "--fairness", "one").stdout.splitlines()
        self.assertEqual(
            lines[:3], ["slice         one", "window        the last 10 s", "applications  1 burst of 1 program"]
        )
        self.assertEqual(self.gpuctl_json("show", "--fairness", "one")["fairness"]["bursts"], 1)

    def test_without_reports_there_are_no_figures(self):
        self.gpuctl("set", "/", "policy=share")
        program = self.start_bench("many", "work", "--blocks", 16, "--iterations", 4, *ENDLESS)
        program.wait_started()
        instance.wait_until(lambda: (self.usage("many", program.pid) or {"launches": 0})["launches"] > 2, "launches")
        found, _ = self.figures("many")
        self.assertEqual((found["programs"], found["bursts"], found["launches"], found["antt"]), (0, 0, 0, 0))
        self.assertIn("under a policy for jobs", self.gpuctl("show", "--fairness", "many").stdout)
        self.assertRightResults(program.stop())
        refused = self.gpuctl("show", "--fairness", "nosuch", check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("nosuch", refused.stderr)


if __name__ == "__main__":
    instance.main()
