"""A target for a slice's latency: others yield while it is missed, `show` says what is done and what came of it, and
all is given back when nobody needs it. Which figures a busy machine reaches is not tested, only what follows."""

import re
import typing

from tests.system.harness import instance

NEVER, ALWAYS = "10us", "3600s"  # shorter than any burst here, and longer
LONG_ENOUGH = "600us"  # to be isolated, and shorter than bursts beside others


class Snapshot(typing.NamedTuple):
    words: str | None
    ls_level: float
    batch_level: float
    ls_in_force: str
    batch_in_force: str


class Latency(instance.SystemTest):
    def begin(self, slices=("ls", "batch")):
        self.start_daemon(config="")
        for name in slices:
            self.gpuctl("create-slice", name, "--isolation", "shared")

    def start_ls(self):
        ls = self.start_bench(
            *("ls", "work", "--blocks", 2, "--iterations", 10, "--count", 1000000, "--announce"),
            *("--arrival", "periodic", "--period-us", 5000),
        )
        ls.wait_started()
        return ls

    def start_batch(self):
        batch = self.start_bench(
            *("batch", "work", "--blocks", 64, "--iterations", 100, "--count", 1000000, "--depth", 2, "--announce")
        )
        batch.wait_started()
        return batch

    def now(self):
        return self.call("GetSlice", path="ls")["slice"].get("latency_now")

    def wait_words(self, pattern):
        seen = []

        def found():
            seen.append(self.now())
            return re.search(pattern, seen[-1] or "")

        return instance.wait_until(found, f"words like {pattern!r}", told=lambda: f"the latest: {seen[-5:]}")

    def snapshot(self):
        """What is so at one instant."""
        now = self.call("Monitor", interval_ms=1000)
        (words,) = [one.get("latency_now") for one in now["slices"] if one["path"] == "ls"]
        usage = {client["slice"]: client["usage"][0] for client in now["clients"]}
        level = {path: one["priority_rank"] / one["priorities"] for path, one in usage.items()}
        in_force = {path: one["in_force"] for path, one in usage.items()}
        return Snapshot(words, level["ls"], level["batch"], in_force["ls"], in_force["batch"])

    def test_others_yield_while_a_target_is_missed_and_get_all_back(self):
        self.begin()
        ls, batch = self.start_ls(), self.start_batch()
        self.assertEqual(self.snapshot().ls_level, self.snapshot().batch_level)
        self.assertIsNone(self.now())

        self.gpuctl("set", "ls", f"latency={ALWAYS}")
        self.wait_words(r"^others need not yield; p99 [\d.]+ \w+ of 3600 s$")
        self.assertIn("target        99 of 100 bursts within 3600s\n", self.gpuctl("show", "ls").stdout)

        self.gpuctl("set", "ls", f"latency={NEVER}")
        seen = []

        def cannot():
            seen.append(self.snapshot())
            return "cannot be met: p99" in seen[-1].words

        instance.wait_until(cannot, "what cannot be met to be said", told=lambda: {one.words for one in seen})
        said = {one.words for one in seen}
        self.assertTrue(any(one.ls_level > one.batch_level for one in seen), said)
        kept = [one for one in seen if "kept" in one.words]
        self.assertTrue(any(one.batch_in_force == "reserve" for one in kept), said)
        self.assertTrue(all(one.ls_in_force == "nothing" for one in seen), said)
        self.assertTrue(any(re.search("others are to yield more|and no bursts since", words) for words in said), said)
        self.assertRegex(seen[-1].words, r"cannot be met: p99 [\d.]+ \w+ of 10 us is the best that was reached")
        self.assertIn("cannot be met", self.gpuctl("show", "ls").stdout)

        self.gpuctl("set", "ls", "latency=none")
        self.assertIsNone(self.now())
        self.assertIn("target        none\n", self.gpuctl("show", "ls").stdout)
        after = self.snapshot()
        self.assertEqual((after.ls_level, after.batch_in_force), (after.batch_level, "nothing"))
        self.assertRightResults(ls.stop())
        self.assertRightResults(batch.stop())

    def test_a_multiple_is_of_what_the_slice_takes_alone(self):
        self.begin()
        self.gpuctl("set", "ls", "latency=1000x")
        ls = self.start_ls()
        self.wait_words(r"; its target is [\d.]+ \w+ \(alone [\d.]+ \w+\)$")
        batch = self.start_batch()
        self.wait_words(r"^others need not yield; p99 [\d.]+ \w+ of [\d.]+ \w+ \(alone [\d.]+ \w+\)")
        self.gpuctl("set", "ls", "latency=1001x", check=False)
        self.wait_words(r"\(alone [\d.]+ \w+\)")
        self.gpuctl("set", "ls", "latency=1x")
        self.wait_words(r"\(alone [\d.]+ \w+\)")  # that is known from before: batch goes on all the time
        self.assertRightResults(ls.stop())
        self.assertRightResults(batch.stop())

    def test_others_are_paused_to_see_what_it_takes_alone_where_they_are_never_quiet(self):
        self.begin()
        batch = self.start_batch()
        self.gpuctl("set", "ls", "latency=1000x")
        ls = self.start_ls()
        self.wait_words(r"0 of 30 bursts seen while nobody else had work")
        self.wait_words(r"^others are paused for a moment, to see what it takes alone: \d+ bursts? so far$")
        in_force = self.snapshot()
        self.assertEqual((in_force.ls_in_force, in_force.batch_in_force), ("nothing", "nothing"))
        self.wait_words(r"; p99 [\d.]+ \w+ of [\d.]+ \w+ \(alone [\d.]+ \w+\)")
        done = [client["usage"][0]["launches"] for client in self.clients("batch")]
        instance.wait_until(
            lambda: [client["usage"][0]["launches"] for client in self.clients("batch")] > done, "batch to go on"
        )
        self.assertRightResults(ls.stop())
        self.assertRightResults(batch.stop())

    def test_a_daemon_that_dies_while_others_are_paused_holds_up_nobody(self):
        self.begin()
        batch = self.start_batch()
        self.gpuctl("set", "ls", "latency=1000x")
        ls = self.start_ls()
        self.wait_words(r"^others are paused for a moment")
        self.daemon.kill()
        self.assertRightResults(batch.stop())
        self.assertRightResults(ls.stop())

    def test_it_is_shared_at_its_next_start_where_isolated_it_missed_its_target(self):
        self.begin(("batch",))
        self.gpuctl("create-slice", "ls", "--latency", LONG_ENOUGH)
        measured = []

        def advice():
            measured[:] = self.call("Advise", path="ls")["measured"]
            return {one["isolation"] for one in measured}

        def isolated():
            return [client["isolated"] for client in self.clients("ls")]

        ls = self.start_ls()
        self.assertEqual(isolated(), [True])
        batch = self.start_batch()
        instance.wait_until(lambda: advice() == {"isolated"}, "what it takes isolated to be known", told=self.now)
        self.assertIn("not known yet: what gpuslice-bench takes shared", self.gpuctl("advise", "ls").stdout)
        then = "isolated until all its programs have ended, then shared, to be tried: isolated it has p99 "
        for said in (self.gpuctl("show", "ls"), self.gpuctl("status"), self.gpuctl("explain", ls.pid)):
            self.assertIn(then, said.stdout)
        self.assertRightResults(ls.stop())
        instance.wait_until(lambda: not self.clients("ls"), "it to be gone")

        self.daemon.process.terminate()
        self.daemon.wait()
        self.start_daemon(config="")
        ls = self.start_ls()
        self.assertEqual(isolated(), [False])
        instance.wait_until(lambda: advice() == {"shared", "isolated"}, "both to be known", told=self.now)
        self.assertEqual({one["program"] for one in measured}, {"gpuslice-bench"})
        self.assertRegex(self.gpuctl("show", "ls").stdout, r"isolation +auto \((shared|isolated)\)\n")
        self.assertRightResults(ls.stop())
        self.assertRightResults(batch.stop())

    def test_it_is_kept_over_a_restart_and_bad_values_give_one_line(self):
        self.begin(("batch",))
        for value in ("5", "0.5x", "fast", "1us"):
            done = self.gpuctl("create-slice", "ls", "--latency", value, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
            self.assertIn("a time from 10us to 3600s such as 5ms", done.stderr)
        self.gpuctl("create-slice", "ls", "--latency", "1.3x")
        self.daemon.kill()
        self.start_daemon(config="")
        self.assertEqual(self.call("GetSlice", path="ls")["slice"]["latency"], "1.3x")
        self.assertEqual(self.now(), "no bursts lately; others need not yield")


if __name__ == "__main__":
    instance.main()
