"""Policies for jobs: turns in time instead of SMs side by side, changed live, kept over a restart."""

import sys
import time

from tests.system.harness import instance, slice_shell

LONG = ("work", "--blocks", 5000, "--iterations", 10, "--depth", 2)  # seconds of block-tasks of milliseconds
SHORT = ("work", "--blocks", 8, "--iterations", 4)  # one wave
LONG_ONES = 2
ENDLESS = ("--count", 1000000, "--announce")


class TimedPolicies(instance.SystemTest):
    def test_weights_divide_the_time(self):
        self.start_daemon()
        self.gpuctl("set", "/", "policy=ffs:max_overhead=0.05")
        self.gpuctl("create-slice", "two", "--weight", 200)
        self.gpuctl("create-slice", "one", "--weight", 100)
        clients = {
            name: self.start_bench(name, "work", "--blocks", 400, "--iterations", 10, "--depth", 2, *ENDLESS)
            for name in ("two", "one")
        }
        for client in clients.values():
            client.wait_started()
        before = {name: self.usage(name, client.pid)["block_tasks"] for name, client in clients.items()}
        time.sleep(8)
        done = {name: self.usage(name, client.pid)["block_tasks"] - before[name] for name, client in clients.items()}
        for client in clients.values():
            self.assertRightResults(client.stop())
        ratio = done["two"] / max(done["one"], 1)
        print(f"block-tasks, weight 200 and 100: {done}", file=sys.stderr)
        self.assertTrue(1.4 <= ratio <= 2.8, f"{done}: {ratio:.2f}, not about 2")


class Policies(instance.SystemTest):
    def test_a_short_job_need_not_wait_for_a_long_one(self):
        """FLEP's priorities against first come, first served, by a change of the policy while both run."""
        self.start_daemon()
        self.gpuctl("set", "/", "policy=fcfs")
        self.gpuctl("create-slice", "high", "--priority", 10)
        self.gpuctl("create-slice", "low")
        low = self.start_bench("low", *LONG, *ENDLESS)
        low.wait_started()
        high = self.start_bench("high", *SHORT, *ENDLESS, "--arrival", "periodic", "--period-us", 20000)
        high.wait_started()

        def launches_until(enough):
            """How many low and high have had from now on, as soon as there are enough."""

            def launches():
                return [self.usage(name, client.pid)["launches"] for name, client in (("low", low), ("high", high))]

            begin, had = launches(), [0, 0]

            def there_are():
                had[:] = [now - before for now, before in zip(launches(), begin)]
                return enough(*had)

            instance.wait_until(there_are, "enough launches", told=lambda: had)
            return had

        fcfs = launches_until(lambda of_low, _: of_low >= LONG_ONES)
        self.gpuctl("set", "/", "policy=hpf:protect_ms=1000")
        hpf = launches_until(lambda _, of_high: of_high >= 4 * max(fcfs[1], 1))
        states = self.states_seen("low", low)
        self.gpuctl("set", "/", "policy=share")
        for client in (high, low):
            self.assertRightResults(client.stop())
        print(f"launches of low and high: fcfs {fcfs}, hpf {hpf}", file=sys.stderr)
        # Under fcfs one short launch fits between two long ones; under hpf one in each period.
        self.assertLessEqual(hpf[0], LONG_ONES, f"{fcfs} under fcfs")
        self.assertTrue(states & {"evicted", "to-evict"}, states)

    def test_priorities_that_differ_are_left_to_the_gpu(self):
        """Nobody is evicted, and still a short launch comes between the blocks of a long one."""
        self.start_daemon(config="")
        self.gpuctl("set", "/", "policy=hpf")
        self.gpuctl("create-slice", "high", "--priority", 10)
        self.gpuctl("create-slice", "low")
        programs = {"low": self.start_bench("low", *LONG, *ENDLESS)}
        programs["low"].wait_started()
        programs["high"] = self.start_bench("high", *SHORT, *ENDLESS, "--arrival", "periodic", "--period-us", 20000)
        programs["high"].wait_started()

        def launches(name):
            return self.usage(name, programs[name].pid)["launches"]

        before = {name: launches(name) for name in programs}
        instance.wait_until(lambda: launches("high") >= before["high"] + 10, "launches of the short kernel")
        self.assertLess(launches("low") - before["low"], 5)
        for name, program in programs.items():
            usage = self.usage(name, program.pid)
            self.assertEqual((usage["in_force"], usage["evictions"]), ("nothing", 0), name)
            self.assertRightResults(program.stop())

    def test_the_streams_of_a_program_share_its_turn(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        self.gpuctl("set", "/", "policy=srt")
        shell = slice_shell.SliceShell(self, GPUCTL_SLICE="s")
        shell.do("init")
        for stream in (0, 1):
            shell.do("launch", stream, *slice_shell.LONG)
        shell.wait_running_on({0, 1, 2, 3}, {4, 5, 6, 7})
        shell.finish(0, 1)

    def test_policy_and_durations_outlive_the_daemon(self):
        daemon = self.start_daemon()
        self.gpuctl("set", "/", "policy=srt:protect_ms=50")
        client = self.start_bench("/", *SHORT, *ENDLESS)
        client.wait_started()

        def known():
            return next(
                (
                    k
                    for k in self.call("ListKernels")["kernels"]
                    if k["launches"] >= 20 and k["predicted_us"] > 0 and "work" in k["name"]
                ),
                None,
            )

        first = instance.wait_until(known, "launches to be learnt")
        self.assertRightResults(client.stop())
        self.assertGreater(first["observed_us"], 100)
        daemon.process.terminate()
        self.assertEqual(daemon.wait(), 0)
        self.start_daemon()
        self.assertEqual(self.call("GetSlice", path="/")["slice"]["policy"], "srt:protect_ms=50")
        again = known()
        self.assertGreaterEqual(again["launches"], first["launches"])
        self.assertIn("work", self.gpuctl("show", "--kernels").stdout)

    def test_what_ran_is_recorded_and_replayed(self):
        self.start_daemon()
        self.gpuctl("create-slice", "a", "--weight", 300)
        clients = [self.start_bench(path, *SHORT, *ENDLESS) for path in ("a", "/")]
        for client in clients:
            client.wait_started()
        trace = self.scratch / "trace.toml"
        said = self.gpuctl("monitor", "--record", trace, "--seconds", 3).stdout
        for client in clients:
            self.assertRightResults(client.stop())
        launches = int(said.split()[0])
        self.assertGreater(launches, 4)
        text = trace.read_text()
        self.assertEqual(text.count("[[application]]"), launches)
        self.assertIn("weight = 300", text)
        self.assertIn("work", text)
        for result in self.gpuctl_json("simulate", trace, "--policy", "frs,fcfs"):
            self.assertEqual(result["launches"], launches)
            self.assertGreaterEqual(result["antt"], 1)
        nothing = self.gpuctl("monitor", "--record", trace, "--seconds", 0.1, check=False)
        self.assertEqual(nothing.returncode, 1, nothing.stderr)
        self.assertEqual(trace.read_text(), text, "what was there stays")

    def test_what_was_recorded_outlives_the_daemon(self):
        self.start_daemon()
        self.gpuctl("create-slice", "a", "--weight", 300)
        for client in [self.start_bench(path, *SHORT, *ENDLESS) for path in ("a", "/")]:
            client.wait_started()
        trace = self.scratch / "trace.toml"
        monitor = self.start(instance.GPUCTL, "monitor", "--record", trace)
        instance.wait_until(trace.exists, "the recording to begin")
        time.sleep(3)  # a part is told now and then
        self.daemon.kill()
        self.assertEqual(monitor.wait(), 3, monitor.err())
        self.assertRegex(monitor.err(), r"^gpuctl: gpuctld at .*; nothing is recorded after that\n$")
        launches = int(monitor.out().split()[0])
        self.assertGreater(launches, 0)
        self.assertEqual(trace.read_text().count("[[application]]"), launches)

    def test_what_is_not_a_policy_is_refused(self):
        self.start_daemon()
        for text, said in (
            ("nosuch", "known: share, srt, frs, ffs, dprr, hpf; of papers: fcfs"),
            ("hpf:spatial=2", "from 0 to 1"),
            ("rr:epoch_ms=3", "no option"),
            ("sim:refine_ms=x", "from 0 to 10000"),
            ("share:x=1", "no options"),
        ):
            refused = self.gpuctl("set", "/", f"policy={text}", check=False)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(said, refused.stderr)
        self.assertEqual(self.call("GetSlice", path="/")["slice"]["policy"], "share")

    def states_seen(self, slice_path, client):
        seen = set()
        end = time.monotonic() + 3
        while time.monotonic() < end and not seen & {"evicted", "to-evict"}:
            seen |= {c["state"] for c in self.clients(slice_path) if c["pid"] == client.pid}
        return seen


if __name__ == "__main__":
    instance.main()
