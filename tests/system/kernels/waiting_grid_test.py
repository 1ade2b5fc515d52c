"""Grids whose blocks wait for each other, launched in the ordinary way, end whatever comes into force meanwhile."""

from tests.system.harness import instance
from tests.system.sharing.cooperative_test import PROGRAM, SUCCESS

BLOCKS_ON_SM = 32
WHOLE = BLOCKS_ON_SM * instance.SMS
HALF = instance.SMS // 2
# Its first launch has company: in the same stream, for some seconds, one kernel after the other, some of them ahead.
BUSY_S = 9
THEN_BUSY = PROGRAM.replace(
    ".visible .entry each(",
    """.visible .entry nap(.param .u64 arrived)
{
  nanosleep.u32 1000000;
  nanosleep.u32 1000000;
  ret;
}
.visible .entry each(""",
).replace(
    "    done = cuda.cuCtxSynchronize()\n",
    f"""    if "nap" not in globals():
        import itertools, time
        nap, events = ctypes.c_void_p(), [ctypes.c_void_p() for _ in range(4)]
        cuda.cuModuleGetFunction(ctypes.byref(nap), module, b"nap")
        for event in events: cuda.cuEventCreate(ctypes.byref(event), 2)
        print("busy", flush=True)
        until = time.monotonic() + {BUSY_S}
        for number in itertools.count():
            if time.monotonic() >= until: break
            cuda.cuEventSynchronize(events[number % 4])
            launch(nap, 1, 1, 1, 1, 1, 1, 0, None, parameters, None)
            cuda.cuEventRecord(events[number % 4], None)
    done = cuda.cuCtxSynchronize()
""",
)
NOT_HELD = "do not hold all its blocks at once, which may wait for each other"


class WaitingGrid(instance.SystemTest):
    def begin(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        self.gpuctl("create-slice", "other")
        program = self.start_script_in("s", PROGRAM, says="0 0 0 0 0")
        self.ask(program, "meet", WHOLE)
        return program

    def ask(self, program, kernel, blocks):
        self.assertEqual(program.ask("Kernel", kernel, blocks), f"{SUCCESS} 0 {blocks}")

    def wait_for(self, program, kernel, said):
        def reason():
            return self.kernels_of(program, kernel)[0]["reason"]

        instance.wait_until(lambda: said in reason(), f"{kernel} to say {said!r}", told=reason)

    def check(self, program):
        """On half of the GPU: what waits for each other is confined where it fits, all else in any case."""
        instance.wait_until(lambda: self.usage("s", program.pid)["granted"] == HALF, "the grant")
        for _ in range(3):
            self.ask(program, "meet", WHOLE)
        self.wait_for(program, "meet", NOT_HELD)
        self.ask(program, "meet", BLOCKS_ON_SM * HALF)
        self.wait_for(program, "meet", f"on {HALF} (a green context)")
        self.ask(program, "each", WHOLE)

    def test_a_max_that_is_set_while_it_runs(self):
        program = self.begin()
        self.gpuctl("set", "s", f"max={HALF}")
        self.check(program)
        self.gpuctl("set", "s", "max=none")
        self.ask(program, "meet", WHOLE)

    def test_a_strict_reserve_of_another(self):
        program = self.begin()
        self.gpuctl("set", "other", f"reserve={HALF}", "reserve-mode=strict")
        self.check(program)

    def test_another_slice_with_greater_weight(self):
        program = self.begin()
        self.gpuctl("set", "other", "weight=300")
        bench = self.start_bench("other", "work", "--blocks", 64, "--count", 100)
        for _ in range(10):
            self.ask(program, "meet", WHOLE)
        self.assertRightResults(bench.report())
        self.ask(program, "meet", WHOLE)

    def test_a_freeze_whenever_it_comes(self):
        program = self.begin()
        for max_sms in ("none", HALF):
            self.gpuctl("set", "s", f"max={max_sms}")
            for _ in range(6):
                program.tell("Kernel", "meet", BLOCKS_ON_SM * HALF)
                self.gpuctl("freeze", "s")
                self.gpuctl("thaw", "s")
                self.assertEqual(program.answer("meet"), f"{SUCCESS} 0 {BLOCKS_ON_SM * HALF}")

    def test_one_that_has_ended_is_not_said_to_be_stuck_while_its_stream_goes_on(self):
        gpuctld = self.start_daemon(config="")
        self.gpuctl("create-slice", "s", "--max", HALF)
        program = self.start_script_in("s", THEN_BUSY, says="0 0 0 0 0")
        program.tell("Kernel", "meet", BLOCKS_ON_SM * HALF)
        self.assertEqual(program.answer("its first launch"), "busy")
        self.gpuctl("set", "s", "max=none")
        self.assertEqual(program.answer("its last one"), f"{SUCCESS} 0 {BLOCKS_ON_SM * HALF}")
        self.assertNotIn("has not ended", gpuctld.err())
        self.gpuctl("set", "s", f"max={HALF}")
        instance.wait_until(lambda: self.usage("s", program.pid)["granted"] == HALF, "the grant")
        self.ask(program, "meet", BLOCKS_ON_SM * HALF)
        self.wait_for(program, "meet", f"on {HALF} (a green context)")

    def test_one_that_waits_for_another_launch_is_said_to_be_stuck(self):
        gpuctld = self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", HALF)
        # It waits for one block more than it has.
        program = self.start_script_in("s", PROGRAM.replace("D32_v2(word, 0,", "D32_v2(word, -1,"), says="0 0 0 0 0")
        program.process.stdin.write(f"Kernel meet {BLOCKS_ON_SM}\n")
        program.process.stdin.flush()
        instance.wait_until(lambda: "has not ended" in gpuctld.err(), "the daemon to say so", told=gpuctld.err)
        said = rf"a launch of meet has not ended for \d+ ms on the {HALF} SMs"
        self.assertRegex(gpuctld.err(), rf"process {program.pid} \(.*, slice /?s\): {said}")
        self.assertEqual(gpuctld.err().count("has not ended"), 1)
        self.gpuctl("kill", "s")
        program.process.wait()


if __name__ == "__main__":
    instance.main()
