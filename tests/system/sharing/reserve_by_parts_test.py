"""Beside kept reserves alone, kernels that could be evicted keep their original form, confined to the SMs that are left
(reserve_by_parts), and get the other form back when something else comes into force."""

import sys

from tests.system.harness import instance
from tests.system.sharing import opaque_test
from tests.system.sharing.opaque_test import MS, ROUNDS, WHAT_WAS_THERE

RESERVE = 4
# The same kernels, but the first can be rewritten; and each answer says on which SMs it ran.
PROGRAM = opaque_test.PROGRAM.replace("  mov.u64 %rd6, %gridid;\n", "", 1).replace(
    'bin(mask.value).count("1")', "hex(mask.value)"
)
BESIDE = "launched beside kept reserves alone in its original form"


class ReserveByParts(instance.SystemTest):
    warp_instruction_ns = 0

    def start_beside(self, by_parts, mode):
        config = f"[daemon]\nlatency_target_us = 1\nlimits_by_mps = false\nreserve_by_parts = {by_parts}\n"
        self.start_daemon(config=config)
        self.gpuctl("create-slice", "ls", "--reserve", RESERVE, "--reserve-mode", mode)
        self.gpuctl("create-slice", "batch")
        command = [instance.GPUCTL, "run", "--slice", "batch", sys.executable, "-c", PROGRAM]
        self.program = instance.Conversation(self, command, self.env_of_others())
        self.assertEqual(self.program.answer("its start"), "ready")

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
