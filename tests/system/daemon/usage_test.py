"""gpuctl usage: what programs used, beside what the software GPU ran of them, over the end of programs and daemons."""

import json
import os
import signal

from tests.system.harness import instance, users
from tests.system.harness.sms import watch_sms

# Bursts of half a second: what the processor takes to begin and end one is little beside that. On a quiet machine they
# agree within 1.3 %; others that want the processor take it between what the daemon and the software GPU look at.
LONG = ("work", "--blocks", 1024, "--iterations", 150, "--warmup", 0, "--check", "last")
PERIOD_S = 10  # UsageKeeper::kPeriod
PART = 0.1


class Harness(instance.SystemTest):
    def used(self, slice_path, **question):
        entries = self.call("GetUsage", slice=slice_path, **question)["entries"]
        self.assertLessEqual(len(entries), 1, entries)
        return entries[0] if entries else None


class TimedUsage(Harness):
    def ran(self, watch):
        """{pid: (seconds with blocks, the same times the SMs)}; of pid 0 all together."""
        lines = watch.communicate()[0].splitlines()
        return {int(pid): (float(s), float(sm_s)) for pid, s, sm_s in map(str.split, lines)}

    def wait_for_launches(self, program, count):
        """Of those that the daemon, which may be another one by now, has seen."""
        instance.wait_until(
            lambda: (self.usage("a", program.pid) or {"launches": 0})["launches"] >= count, f"{count} launches"
        )

    def assertNear(self, told, ran, what, part=PART):
        print(f"{what}: told {told:.3f} s, ran {ran:.3f} s, {100 * (told / ran - 1):+.2f} %")
        self.assertLess(abs(told / ran - 1), part, what)

    def agree(self, slices, part=PART):
        """Programs, of slices by name, use together what they are seen to use, and one alone works for as long."""
        watch = watch_sms(self, "sums")
        programs = {path: self.start_bench(path, *LONG, *more) for path, more in slices.items()}
        for program in programs.values():
            self.assertRightResults(program.report())
        launches = {path: self.ended(path, 1)["ended_launches"] for path in programs}
        ran = self.ran(watch)
        told = {path: self.used(path) for path in programs}
        self.assertEqual({path: one["launches"] for path, one in told.items()}, launches)
        for path, program in programs.items() if len(programs) == 1 else ():  # beside others it waits too
            self.assertNear(told[path]["work_seconds"], ran[program.pid][0], f"{path} at work")
        sum_told = sum(one["sm_seconds"] for one in told.values())
        self.assertNear(sum_told, ran[0][1], "SM seconds", part)
        return told

    def test_agrees_with_the_gpu_where_nothing_is_in_force(self):
        self.start_daemon(config="")
        self.gpuctl("create-slice", "a")
        told = self.agree({"a": ("--count", 4, "--arrival", "apart", "--period-us", 700000)})["a"]
        self.assertGreaterEqual(told["bursts"], 4)
        self.assertEqual(told["evictions"], 0)
        self.assertGreater(told["memory_byte_seconds"], 0)

    def test_agrees_below_a_max(self):
        self.start_daemon()
        self.gpuctl("create-slice", "m", "--max", 4)
        told = self.agree({"m": ("--count", 4, "--arrival", "apart", "--period-us", 700000)})["m"]
        self.assertGreater(told["waited_seconds"], told["work_seconds"] / 2, "but for the ends of kernels")

    def test_agrees_for_two_at_once(self):
        self.start_daemon()
        for path in ("a", "b"):
            self.gpuctl("create-slice", path, "--max", 4)
        self.agree({path: ("--count", 3) for path in ("a", "b")})

    def test_agrees_about_for_two_that_take_sms_from_each_other(self):
        """Whose workers share SMs for a while."""
        self.start_daemon()
        self.gpuctl("create-slice", "a", "--weight", 300)
        self.gpuctl("create-slice", "b")
        self.agree({"a": ("--count", 6), "b": ("--count", 2)}, part=0.15)

    def test_a_killed_program_and_a_killed_daemon_lose_little_and_nothing_counts_twice(self):
        self.start_daemon()
        self.gpuctl("create-slice", "a")
        watch = watch_sms(self, "sums")
        killed = self.start_bench("a", *LONG, "--count", 1000)
        self.wait_for_launches(killed, 3)
        killed.kill()
        self.ended("a", 1)
        lives = self.start_bench("a", *LONG, "--count", 1000)
        self.wait_for_launches(lives, 2)
        before = self.used("a")  # which is written
        self.wait_for_launches(lives, 4)
        self.daemon.process.kill()
        self.daemon.process.wait()
        self.start_daemon()
        self.assertGreaterEqual(self.used("a")["work_seconds"], before["work_seconds"])
        self.wait_for_launches(lives, 2)
        lives.stop()
        self.ended("a", 1)  # of the programs of this daemon
        told = self.used("a")
        self.gpuctl("delete-slice", "a")
        ran = self.ran(watch)[0][0]  # one after the other
        print(f"told {told['work_seconds']:.2f} s, ran {ran:.2f} s")
        self.assertLess(told["work_seconds"], ran * (1 + PART))
        self.assertGreater(told["work_seconds"], ran - PERIOD_S)
        self.daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.daemon.wait(), 0, self.daemon.err())
        self.start_daemon()
        self.assertEqual(self.used("a"), told, "the slice is gone, and what it used is not")
        lines = self.gpuctl("usage", "--since", "1h").stdout.splitlines()
        self.assertRegex(lines[1], r"^a +\S+ +0 +\S")
        self.assertEqual(json.loads(self.gpuctl("usage", "--until", "1d", "--json").stdout)["entries"], [])
        reversed_times = self.gpuctl("usage", "--since", "1h", "--until", "12h", check=False)
        self.assertEqual((reversed_times.returncode, reversed_times.stdout), (2, ""))
        self.assertIn("--since 1h is after --until 12h", reversed_times.stderr)


class Usage(Harness):
    def test_others_are_told_of_their_own_programs_alone(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to become somebody else")
        os.chmod(self.scratch, 0o755)
        self.start_daemon(config='daemon.socket_mode = "0666"\n[slice.theirs]\nowner_uid = 65534\n')
        self.assertRightResults(self.start_bench("theirs", *LONG, "--count", 1).report())
        self.assertGreater(self.used("theirs")["launches"], 0)

        def ask():
            self.daemon.process.poll = lambda: None  # it is not this process's child
            answers = []
            for question in ({}, {"slice": "theirs"}, {"uid": users.NOBODY}, {"uid": 0}):
                try:
                    answers.append(self.call("GetUsage", **question)["entries"])
                except AssertionError as refused:
                    answers.append(str(refused))
            return json.dumps(answers).encode()

        *own, roots = json.loads(users.start_as(self, users.NOBODY, ask)[1])
        self.assertEqual(own, [[], [], []], "they own the slice, and ran nothing")
        self.assertIn("PermissionDenied", roots)

    def test_a_file_that_cannot_be_used_holds_nothing_up(self):
        self.state.mkdir(mode=0o700)
        (self.state / "usage.db").mkdir()
        self.start_daemon()
        self.assertRightResults(self.start_bench("/", *LONG, "--count", 1).report())
        refused = self.gpuctl("usage", check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("gpuctl: the daemon cannot tell: ", refused.stderr)
        self.gpuctl("usage", check=False)
        self.assertEqual(self.daemon.err().count("what is used is not kept for now"), 1, self.daemon.err())
        (self.state / "usage.db").rmdir()
        launches = self.ended("/", 1)["ended_launches"]
        self.assertEqual(self.used("/")["launches"], launches, "it is written as soon as that is possible")

    def test_a_damaged_file_is_put_aside(self):
        self.state.mkdir(mode=0o700)
        (self.state / "usage.db").write_bytes(b"no database" * 1000)
        self.start_daemon()
        self.assertRightResults(self.start_bench("/", *LONG, "--count", 1).report())
        self.assertEqual(self.used("/")["launches"], self.ended("/", 1)["ended_launches"])
        self.assertEqual(self.daemon.err().count("usage.db.damaged"), 1, self.daemon.err())
        self.assertTrue((self.state / "usage.db.damaged").exists())


if __name__ == "__main__":
    instance.main()
