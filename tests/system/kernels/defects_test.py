"""Kernels that other rewriters got wrong leave what they should: in their original form, rewritten, and under
evictions."""

import pathlib
import re
import sys

from tests.system.harness import instance

KERNELS = pathlib.Path(__file__).resolve().parents[2] / "ptx/defects"
STORM_US = 10000  # between two random grants
LEAST_EVICTIONS = 30
SLOWLY_NS = 5000  # of a warp instruction: long enough to be evicted in the middle
# More blocks of one warp than that run on an SM at the same time.
MANY_BLOCKS_AN_SM = 20
# So many fit beside each other in an SM's shared memory, where its threads would leave room for 32.
ROOM_FOR = 2

WAITS = "a loop may wait for another block"
OPAQUE = {"cooperative", "look_back_scan", "blocks_wait_for_each_other"}


class Defects(instance.SystemTest):
    warp_instruction_ns = 0

    def test_original(self):
        """Nothing that follows would mean anything if this were wrong."""
        program = self.start(instance.DRIVER_PROGRAMS / "defects", KERNELS, 0)
        self.wait_for_many_at_once(program)

    def test_rewritten(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        program = self.start_in("s", instance.DRIVER_PROGRAMS / "defects", KERNELS, 0)
        names = {path.stem for path in KERNELS.glob("*.ptx")}
        kernels = {kernel["name"]: kernel for kernel in self.kernels_of(program, *names)}
        self.wait_for_many_at_once(program)
        self.assertEqual({name for name, kernel in kernels.items() if kernel["form"] == "opaque"}, OPAQUE, kernels)
        for name in OPAQUE:
            self.assertIn(WAITS, kernels[name]["reason"])
        self.assertIn("all are granted", kernels["cooperative"]["reason"])  # not for the green contexts it would want
        self.assertEqual(kernels["shared_memory_decides_occupancy"]["per_sm"], ROOM_FOR)
        self.assertGreater(kernels["one_warp_blocks"]["per_sm"], MANY_BLOCKS_AN_SM)

    def test_evicted(self):
        self.env["SOFTGPU_WARP_INSTRUCTION_NS"] = str(SLOWLY_NS)
        self.start_daemon("--evict-storm", STORM_US)
        self.gpuctl("create-slice", "s")
        program = self.start_in("s", instance.DRIVER_PROGRAMS / "defects", KERNELS, 0)
        evictions = instance.wait_until(
            lambda: self.goes_on(program) and "round 2" in program.out() and self.evictions(program),
            f"two rounds and {LEAST_EVICTIONS} evictions",
            interval=0.05,
        )
        program.process.terminate()
        self.assertEqual(program.wait(), 0, program.err())
        print(f"{evictions} evictions, {len(program.out().splitlines())} rounds right", file=sys.stderr)

    def goes_on(self, program):
        if program.process.poll() is not None:
            raise AssertionError(f"ended early with {program.process.returncode}: {program.err()}")
        return True

    def evictions(self, program):
        usage = self.usage("s", program.pid)
        return usage and usage["evictions"] >= LEAST_EVICTIONS and usage["evictions"]

    def wait_for_many_at_once(self, program):
        """Two rounds at least, and one in which the blocks of one_warp_blocks met. Then the program ends."""

        def met():
            most = [int(number) for number in re.findall(r"most (\d+)\n", program.out())]
            return self.goes_on(program) and len(most) >= 2 and max(most) > MANY_BLOCKS_AN_SM * instance.SMS

        instance.wait_until(met, f"more than {MANY_BLOCKS_AN_SM} blocks on each SM")
        program.process.terminate()
        self.assertEqual(program.wait(), 0, program.err())


if __name__ == "__main__":
    instance.main()
