"""Beside kept reserves alone, kernels that could be evicted keep their original form, confined to the SMs that are left
(reserve_by_parts), and get the other form back when something else comes into force."""

import sys

from tests.system.harness import instance
from tests.system.sharing import opaque_test
from tests.system.sharing.opaque_test import MS, ROUNDS, WHAT_WAS_THERE

RESERVE = 4
# Each answer says on which SMs the kernels ran.
OPAQUE = opaque_test.PROGRAM.replace('bin(mask.value).count("1")', "hex(mask.value)")
# The same kernels, but the first can be rewritten.
PROGRAM = OPAQUE.replace("  mov.u64 %rd6, %gridid;\n", "", 1)
BESIDE = "launched beside kept reserves alone in its original form"


class ReserveByParts(instance.SystemTest):
    warp_instruction_ns = 0

    def start_beside(self, by_parts, mode, program=PROGRAM):
        config = f"[daemon]\nlatency_target_us = 1\nlimits_by_mps = false\nreserve_by_parts = {by_parts}\n"
        self.start_daemon(config=config)
        self.gpuctl("create-slice", "ls", "--reserve", RESERVE, "--reserve-mode", mode)
        self.program = self.start_launcher("batch", program)

    def start_launcher(self, name, program):
        self.gpuctl("create-slice", name)
        command = [instance.GPUCTL, "run", "--slice", name, sys.executable, "-c", program]
        started = instance.Conversation(self, command, self.env_of_others())
        self.assertEqual(started.answer("its start"), "ready")
        return started

    def launch(self, kind="non-blocking", nanoseconds=MS):
        """Launches, whose results are right. The SMs that they ran on, and the block-tasks of rewritten kernels."""
        before = self.usage("batch", self.program.pid)["block_tasks"]
        wrong, in_order, mask = self.program.ask(kind, WHAT_WAS_THERE, ROUNDS, nanoseconds).split()
        self.assertEqual((wrong, in_order), ("0", "True"))
        return int(mask, 16), self.usage("batch", self.program.pid)["block_tasks"] - before

    def goes_by_parts(self, always_kept):
        """Whether a launch kept its original form, on what the reserve leaves."""
        mask, block_tasks = self.launch()
        within = mask.bit_count() <= instance.SMS - RESERVE
        self.assertTrue(within or not always_kept, hex(mask))
        return within and block_tasks == 0

    def assertEvictable(self):
        def evicted():
            self.program.process.stdin.write(f"non-blocking {WHAT_WAS_THERE} {ROUNDS} {MS}\n")
            self.program.process.stdin.flush()
            before = self.evictions_of("batch", self.program)
            for most in (1, 3) * 3:
                self.gpuctl("set", "batch", f"max={most}")
            self.assertEqual(self.program.answer("the launches").split()[:2], ["0", "True"])
            return self.evictions_of("batch", self.program) > before

        instance.wait_until(evicted, "an eviction")

    def test_beside_a_strict_reserve(self):
        self.start_beside("true", "strict")
        sms = set()
        for kind in ("legacy", "per-thread", "blocking", "non-blocking"):
            with self.subTest(stream=kind):
                mask, block_tasks = self.launch(kind)
                self.assertEqual(block_tasks, 0)
                sms.add(mask)
        (mask,) = sms
        self.assertEqual(mask.bit_count(), instance.SMS - RESERVE)
        instance.wait_until(lambda: self.explains(BESIDE, "on 4 (a green context)"), "it to be said")
        # A program with the reserve is there, and at work. What that leaves may be granted in steps.
        busy = self.start_bench("ls", "work", "--blocks", RESERVE, "--iterations", 20, "--seconds", 60)
        instance.wait_until(lambda: (self.usage("ls", busy.pid) or {"launches": 0})["launches"], "launches")
        instance.wait_until(lambda: self.goes_by_parts(always_kept=True), "original kernels beside it")
        # Something else comes into force, and goes.
        self.gpuctl("set", "batch", "max=2")
        instance.wait_until(lambda: self.launch()[1] > 0, "rewritten kernels")
        self.assertLessEqual(self.launch()[0].bit_count(), 2)
        self.assertEvictable()
        self.gpuctl("set", "batch", "max=none")
        instance.wait_until(lambda: self.goes_by_parts(always_kept=True), "original kernels again")

    def test_two_programs_have_what_it_leaves_in_common(self):
        self.start_beside("true", "strict")
        second = self.start_launcher("other", PROGRAM)
        mask, block_tasks = self.launch_beside(second)
        self.assertEqual((mask.bit_count(), block_tasks), (instance.SMS - RESERVE, 0))
        self.assertTrue(self.explains("original kernels on 4 SMs, in common"))
        # Where one of them weighs more, each has SMs of its own again.
        self.gpuctl("set", "other", "weight=300")
        instance.wait_until(lambda: self.launch()[1] > 0, "rewritten kernels")
        self.assertFalse(self.explains("in common"))

    def test_original_kernels_have_all_in_common_while_it_is_lent(self):
        self.start_beside("true", "active", OPAQUE)
        self.start_idle_in("ls")
        second = self.start_launcher("other", OPAQUE)
        instance.wait_until(lambda: self.explains("original kernels on 8 SMs, in common"), "it to be lent")
        self.assertEqual(self.launch_beside(second)[0].bit_count(), instance.SMS)

    def launch_beside(self, program):
        """launch(), while the other program has work."""

        def has_work():
            return self.usage("other", program.pid)["demand"] > 0

        program.process.stdin.write(f"non-blocking {WHAT_WAS_THERE} {ROUNDS} {100 * MS}\n")
        program.process.stdin.flush()
        instance.wait_until(has_work, "its demand")
        result = self.launch()
        self.assertTrue(has_work(), "it ended first")
        return result

    def explains(self, *what):
        said = self.gpuctl("explain", self.program.pid).stdout
        return all(one in said for one in what)

    def test_an_active_reserve_only_while_it_is_kept(self):
        self.start_beside("true", "active")
        self.assertEqual(self.launch()[1], 0)  # nothing is in force: the slice with the reserve has no program
        other = self.start_idle_in("ls")
        instance.wait_until(lambda: self.launch()[1] > 0, "rewritten kernels while the reserve is lent")
        other.kill()
        busy = self.start_bench("ls", "work", "--blocks", RESERVE, "--iterations", 20, "--seconds", 60)
        # What a rewritten kernel did may be counted a little later, but not three launches later.
        instance.wait_until(
            lambda: all(self.goes_by_parts(always_kept=False) for _ in range(3)), "original kernels while it is kept"
        )
        busy.stop()
        self.start_idle_in("ls")
        instance.wait_until(lambda: self.launch()[1] > 0, "rewritten kernels while it is lent again")

    def test_can_be_off(self):
        self.start_beside("false", "strict")
        instance.wait_until(lambda: self.launch()[1] > 0, "rewritten kernels")
        self.assertFalse(self.explains(BESIDE))


if __name__ == "__main__":
    instance.main()
