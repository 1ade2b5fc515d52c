"""gpuslice-bench by itself, without gpuctl: what it prints, how it keeps time, and how it refuses wrong usage."""

import subprocess
import time

from tests.system.harness import instance

KEYS = {
    "kernel",
    "device",
    "sms",
    "grid",
    "block",
    "steps",
    "block_tasks",
    "extent",
    "launches",
    "repeats",
    "window_s",
    "kernels_per_s",
    "block_tasks_per_s",
    "latency_us",
    "response_us",
    "gpu_us",
    "launch_call_us",
    "checked",
    "mismatches",
    "first_mismatch",
    "output_hash",
}


class Bench(instance.SystemTest):
    warp_instruction_ns = 2000

    def report(self, *arguments):
        return self.start_bench(None, *arguments).report()

    def test_documented_keys(self):
        report = self.report("vectorAdd", "--count", 4)
        self.assertEqual(set(report), KEYS)
        self.assertEqual(
            (report["kernel"], report["steps"], report["launches"], report["sms"]), ("vectorAdd", 1, 4, instance.SMS)
        )
        self.assertEqual(report["block_tasks"], report["grid"][0])
        self.assertEqual(report["checked"], 6)  # two of them warm-up

    def test_seeds_change_results_and_repeat_them(self):
        first, again, other = (
            self.report("reduction", "--count", 1, "--seed", seed)["output_hash"] for seed in (4, 4, 5)
        )
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_checks(self):
        self.assertEqual(self.report("histogram", "--count", 5, "--check", "none")["output_hash"], None)
        last = self.report("histogram", "--count", 5, "--check", "last")
        self.assertEqual((last["checked"], last["launches"], last["mismatches"]), (1, 5, 0))

    def test_periodic_arrivals_keep_their_time(self):
        report = self.report(
            "work", "--blocks", 1, "--iterations", 1, "--arrival", "periodic", "--period-us", 50000, "--seconds", 1
        )
        self.assertEqual(report["launches"], 20)
        self.assertGreater(report["window_s"], 0.9)

    def test_launches_apart_wait_after_the_end_of_the_one_before(self):
        samples = self.scratch / "samples"
        self.report("work", "--arrival", "apart", "--period-us", 20000, "--count", 4, "--samples", samples)
        rows = [[int(field) for field in line.split()[:4]] for line in samples.read_text().splitlines()[1:]]
        for before, row in zip(rows, rows[1:]):
            self.assertEqual(row[0], before[3] + 20_000_000)
            self.assertGreaterEqual(row[1], row[0])

    def test_priority_hints_need_a_slice(self):
        program = self.start_bench(None, "work", "--hints", "1,9")
        self.assertEqual(program.process.wait(instance.PATIENCE_S), 1)
        self.assertIn("--hints: this program runs in no slice", program.err())

    def test_several_streams_in_flight(self):
        report = self.report("work", "--count", 20, "--streams", 3, "--depth", 2)
        self.assertEqual((report["launches"], report["checked"], report["mismatches"]), (20, 22, 0))

    def test_start_at(self):
        start = time.monotonic_ns() + 2_000_000_000
        samples = self.scratch / "samples"
        self.report("work", "--count", 3, "--start-at", start, "--samples", samples)
        lines = samples.read_text().splitlines()
        self.assertEqual(lines[0], "due_ns issue_ns issued_ns complete_ns gpu_us")
        self.assertEqual(len(lines), 4)
        times = [int(field) for field in lines[1].split()[:4]]
        self.assertEqual(times, sorted(times))
        self.assertGreaterEqual(times[0], start)

    def test_calibration_follows_its_target(self):
        short, long = (
            self.report("work", "--blocks", 8, "--calibrate-us", us, "--count", 1)["extent"][1]
            for us in (20_000, 200_000)
        )
        self.assertGreater(long, 3 * short)  # how near each comes is a matter of what else the machine does

    def test_stopped_early(self):
        client = self.start_bench(None, "vectorAdd", "--count", 1000000, "--announce")
        client.wait_started()
        time.sleep(0.3)
        self.assertRightResults(client.stop())

    def test_wrong_usage(self):
        for arguments in (
            ["run", "nope"],
            ["run", "vectorAdd", "--blocks", "3"],
            ["run"],
            [],
            ["run", "work", "--depth", "0"],
            ["run", "work", "--iterations", "5", "--task-us", "7"],
        ):
            with self.subTest(arguments):
                done = subprocess.run([str(instance.BENCH), *arguments], env=self.env, capture_output=True, text=True)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    instance.main()
