"""placement = "capacity": programs share each SM. Each has as many workers there as its grant says, and its results are
those of the original kernels."""

import signal
import subprocess
import sys

from tests.system.harness import instance

LEAST_EVICTIONS = 100
STORM_US = 10000  # between two random grants
PER_SM = 8  # blocks of 256 threads
LONG = ("work", "--blocks", 2048, "--iterations", 10, "--count", 1000000, "--depth", 2, "--announce")


class Capacity(instance.SystemTest):
    def blocks(self):
        """{pid: its blocks on each SM now}"""
        done = subprocess.run(
            [instance.DRIVER_PROGRAMS / "sm_watch", self.env["SOFTGPU_TABLE"], "now"],
            capture_output=True,
            text=True,
            check=True,
        )
        lines = [[int(word) for word in line.split()] for line in done.stdout.splitlines()]
        return {pid: counts for pid, *counts in lines}

    def wait_blocks(self, expected):
        """Until the programs have so many blocks on every SM, at one instant."""
        seen = {}

        def there():
            seen.update(self.blocks())
            return all(seen.get(program.pid) == [count] * instance.SMS for program, count in expected)

        try:
            instance.wait_until(there, "the workers", seconds=20)
        except AssertionError:
            raise AssertionError(f"{[(p.pid, count) for p, count in expected]}, but {seen}") from None

    def test_two_programs_share_each_sm(self):
        self.start_daemon(config=instance.BY_CAPACITY)
        for name, most in (("a", 4), ("b", 2)):
            self.gpuctl("create-slice", name, "--max", most)
        a, b = (self.start_bench(name, *LONG) for name in ("a", "b"))
        for program in (a, b):
            program.wait_started()
        self.wait_blocks([(a, PER_SM * 4 // instance.SMS), (b, PER_SM * 2 // instance.SMS)])
        said = self.gpuctl("explain", a.pid).stdout
        how = f"rewritten kernels share each of {instance.SMS} SMs, and have the capacity of 4"
        self.assertIn("max; mode capacity: " + how, said)
        self.assertRegex(said, r"persistent .* 4 of 8 .* work ")
        self.assertIn("4 (50 % of each)", self.gpuctl("show", "a").stdout)
        for of_a, of_b in ((2, 6), (5, 3), (1, 1)):
            for name, most in (("a", of_a), ("b", of_b)):
                self.gpuctl("set", name, f"max={most}")
            self.wait_blocks([(a, PER_SM * of_a // instance.SMS), (b, PER_SM * of_b // instance.SMS)])
        for program in (a, b):
            self.assertRightResults(program.stop())

    def test_kernels_that_need_different_things_have_more_than_the_gpu_together(self):
        """An SM has 64 warps: four blocks of one warp, held up by shared memory, leave room for seven of eight."""
        self.start_daemon(config=instance.BY_CAPACITY)
        for name in "ab":
            self.gpuctl("create-slice", name)
        threads = self.start_bench("a", *LONG)
        threads.wait_started()
        self.wait_blocks([(threads, PER_SM)])
        memory = self.start_in("b", instance.DRIVER_PROGRAMS / "scaling", "scales", 640)
        self.wait_blocks([(memory, 4), (threads, 7)])
        self.assertIn(f"share each of {instance.SMS} SMs", self.gpuctl("explain", threads.pid).stdout)
        self.gpuctl("set", "a", "max=3")  # this holds beside others too
        self.wait_blocks([(memory, 4), (threads, 3)])
        # A reserve that is kept is kept whatever its slice's kernel takes now.
        self.gpuctl("set", "a", "max=none")
        self.gpuctl("set", "b", "reserve=4", "reserve_mode=strict")
        self.wait_blocks([(memory, 4), (threads, 4)])
        self.assertAllRight(memory, "scaling")
        self.assertRightResults(threads.stop())

    def test_a_kernel_finds_room_on_the_sms(self):
        """Half of the GPU is two of four blocks of 47 KiB on each SM, or a block of 150 KiB on half of the SMs. These
        do not fit beside each other anywhere. So the first has one block less on each SM."""
        self.start_daemon(config=instance.BY_CAPACITY)
        for name in "ab":
            self.gpuctl("create-slice", name)
        small = self.start_in("a", instance.DRIVER_PROGRAMS / "scaling", "scales", 1600)
        self.wait_blocks([(small, 4)])
        large = self.start_in("b", instance.DRIVER_PROGRAMS / "scaling", "scales", 640, 150)
        self.wait_blocks([(small, 1), (large, 1)])
        large.wait_started()
        for program in (small, large):
            self.assertAllRight(program, "scaling")

    def test_under_sim_they_have_so_too(self):
        self.start_daemon(config=instance.BY_CAPACITY)
        self.gpuctl("set", "/", "policy=sim")
        threads = self.start_bench("/", *LONG)
        memory = self.start_in("/", instance.DRIVER_PROGRAMS / "scaling", "scales", 640)

        def more_than_the_gpu():
            granted = [usage["granted"] for client in self.clients("/") for usage in client["usage"]]
            return sum(granted) > instance.SMS and max(granted) <= instance.SMS

        instance.wait_until(more_than_the_gpu, "both to have more than the GPU together")
        threads.wait_started()
        self.assertAllRight(memory, "scaling")
        self.assertRightResults(threads.stop())

    def test_a_grant_may_be_one_worker_more_on_some_sms(self):
        """An SM holds five: three of eight SMs are fifteen workers, two on all SMs but one. What one program has less
        on an SM the other one has more."""
        per_sm = 5
        self.start_daemon(config=instance.BY_CAPACITY)
        grants = {"a": 3, "b": 5}
        for name, most in grants.items():
            self.gpuctl("create-slice", name, "--max", most)
        arguments = ("md5Hash", "--extent", 400_000, "--count", 100_000, "--depth", 2, "--check", "last", "--announce")
        programs = {name: self.start_bench(name, *arguments) for name in grants}
        for program in programs.values():
            program.wait_started()
        self.assertEqual([kernel["per_sm"] for kernel in self.kernels_of(programs["a"])], [per_sm])

        def as_granted():
            blocks = self.blocks()
            counts = [blocks.get(programs[name].pid, [0]) for name in grants]
            even = all(max(count) - min(count) <= 1 for count in counts)
            return even and [sum(count) for count in counts] == [most * per_sm for most in grants.values()]

        instance.wait_until(as_granted, "the workers")
        self.assertRegex(self.gpuctl("explain", programs["a"].pid).stdout, r" 1 to 2 of 5 ")
        grants = {"a": 5, "b": 3}
        for name, most in grants.items():
            self.gpuctl("set", name, f"max={most}")
        instance.wait_until(as_granted, "the workers")
        for program in programs.values():
            self.assertRightResults(program.stop())

    def test_a_reload_changes_launches_after_it(self):
        self.start_daemon(config=instance.ALWAYS_REWRITTEN + 'lab.placement = "auto"\n')
        self.gpuctl("create-slice", "a", "--max", 4)
        a = self.start_bench("a", *LONG)
        a.wait_started()

        def on_whole_sms():
            return sorted(self.blocks().get(a.pid, [])) == [0] * (instance.SMS - 4) + [PER_SM] * 4

        instance.wait_until(on_whole_sms, "it to fill four SMs")
        self.assertNotIn("share each", self.gpuctl("explain", a.pid).stdout)
        for config in (instance.BY_CAPACITY, instance.ALWAYS_REWRITTEN + 'lab.placement = "sms"\n'):
            (self.scratch / "gpuctl.toml").write_text(config)
            self.daemon.process.send_signal(signal.SIGHUP)
            if config == instance.BY_CAPACITY:
                self.wait_blocks([(a, PER_SM * 4 // instance.SMS)])
        instance.wait_until(on_whole_sms, "it to fill four SMs again")
        self.assertRightResults(a.stop())

    def test_under_sim_programs_are_on_the_same_sms_by_default(self):
        self.start_daemon(config=instance.ALWAYS_REWRITTEN)
        self.gpuctl("set", "/", "policy=sim")
        a, b = (self.start_bench("/", *LONG) for _ in "ab")

        def both_everywhere():
            blocks = self.blocks()
            return all(min(blocks.get(program.pid, [0])) > 0 for program in (a, b))

        instance.wait_until(both_everywhere, "both to have workers on every SM")
        for program in (a, b):
            program.wait_started()
            self.assertRightResults(program.stop())

    def test_storms_change_no_result(self):
        arguments = ("work", "--blocks", 2000, "--iterations", 20)
        original = self.start_bench(None, *arguments, "--count", 1).report()
        for name, config in (("looks", ""), ("eager", "lab.block_target_us = 1000000\n")):
            with self.subTest(name):
                daemon = self.start_daemon("--evict-storm", STORM_US, config=instance.BY_CAPACITY + config)
                self.gpuctl("create-slice", name)
                client = self.start_bench(name, *arguments, "--count", 1000000, "--depth", 2, "--announce")
                client.wait_started()
                instance.wait_until(lambda: self.evictions_of(name, client) >= LEAST_EVICTIONS, "evictions")
                report = client.stop()
                self.assertRightResults(report)
                self.assertEqual(report["output_hash"], original["output_hash"])
                print(f"{name}: {report['checked']} results checked", file=sys.stderr)
                daemon.process.terminate()
                daemon.wait()

    def test_streams_of_a_program_share_its_grant(self):
        self.start_daemon(config=instance.BY_CAPACITY)
        self.gpuctl("create-slice", "a", "--max", 4)
        a = self.start_bench("a", *LONG, "--streams", 2)
        a.wait_started()
        self.wait_blocks([(a, PER_SM * 4 // instance.SMS)])
        self.assertRightResults(a.stop())


if __name__ == "__main__":
    instance.main()
