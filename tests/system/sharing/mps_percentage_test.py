"""MPS itself keeps a program of a slice with a reserve to the SMs that the slice may ever have: its kernels keep their
original form and are in no green context, and programs beside it are not in its way. What the percentage does not keep,
gpuctl keeps as ever."""

from tests.system.harness import instance
from tests.system.sharing import opaque_test, reserve_by_parts_test, told_test
from tests.system.sharing.opaque_test import MS, ROUNDS, WHAT_WAS_THERE

MOST = 4
CONFIG = "lab.latency_target_us = 1\n"
PART = "(a green context)"
KEPT = f"MPS keeps it to {MOST} SMs until it starts again"
VARIABLE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
# Its "hold" launches blocks for the whole GPU, of the size of half an SM.
OPAQUE = opaque_test.PROGRAM.replace("waits, 1, 1, 1, 1, 1, 1, 0, on", "waits, 64, 1, 1, 1024, 1, 1, 0, on")
# The first line it says is what is left of the variable after cuInit, for itself and its children.
LEFT = f"""
import os, subprocess
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
print(libc.getenv(b"{VARIABLE}"), subprocess.run(["printenv", "{VARIABLE}"], capture_output=True).stdout, flush=True)
print("ready", flush=True)
"""


class MpsPercentage(instance.SystemTest):
    warp_instruction_ns = 0

    def start(self, config=CONFIG, reserve=1):
        self.start_daemon(config=config)
        self.gpuctl("create-slice", "ls", "--priority", 50)
        self.gpuctl("create-slice", "batch", "--max", MOST, "--reserve", reserve)

    def start_program(self, name, program=OPAQUE, **env):
        return self.start_script_in(name, program, says=None if LEFT in program else "ready", **env)

    def sms_of(self, program):
        """Of one launch after another, whose results are right."""
        wrong, in_order, sms = program.ask("non-blocking", WHAT_WAS_THERE, ROUNDS, MS).split()
        self.assertEqual((wrong, in_order), ("0", "True"))
        return int(sms)

    def of(self, program, name, slice_path="batch"):
        return self.usage(slice_path, program.pid)[name]

    def explained(self, program):
        return self.gpuctl("explain", program.pid).stdout

    def launched(self, program):
        self.kernels_of(program, "append")  # waits until it is known
        return self.explained(program)

    def test_it_is_in_no_part_and_in_nobodys_way(self):
        self.start()
        batch = self.start_program("batch")
        self.gpuctl("set", "batch", "reserve=0")  # nobody else is confined
        self.assertEqual((self.of(batch, "mps_sms"), self.of(batch, "in_force")), (MOST, "nothing"))
        self.assertEqual(self.sms_of(batch), MOST)
        explained = self.launched(batch)
        self.assertNotIn(PART, explained)
        self.assertIn(KEPT, explained)
        # Its blocks hold all that it can have until somebody lets them go, and as many wait.
        self.assertEqual(batch.ask("hold"), "held")
        beside = self.start_program("ls")
        self.assertEqual(self.sms_of(beside), instance.SMS - MOST)
        self.assertEqual(self.of(beside, "mps_sms", "ls"), 0)

    def test_without_a_reserve_gpuctl_confines_it(self):
        self.start(reserve=0)
        batch = self.start_program("batch")
        self.assertEqual((self.of(batch, "mps_sms"), self.of(batch, "in_force")), (0, "max"))
        self.assertEqual(self.sms_of(batch), MOST)
        instance.wait_until(lambda: f"on {MOST} {PART}" in self.explained(batch), "it to be said")

    def test_kernels_that_could_be_evicted_keep_their_original_form(self):
        self.start()
        batch = self.start_program("batch", reserve_by_parts_test.PROGRAM)
        wrong, in_order, mask = batch.ask("non-blocking", WHAT_WAS_THERE, ROUNDS, MS).split()
        self.assertEqual((wrong, in_order, int(mask, 16).bit_count()), ("0", "True", MOST))
        self.assertIn("while nothing is in force for its slice", self.launched(batch))
        self.assertEqual(self.of(batch, "block_tasks"), 0)

    def test_a_max_that_changes(self):
        self.start()
        batch = self.start_program("batch")
        self.assertEqual(self.sms_of(batch), MOST)
        self.gpuctl("set", "batch", "max=2")
        instance.wait_until(lambda: self.of(batch, "granted") == 2, "the grant")
        self.assertEqual((self.sms_of(batch), self.of(batch, "in_force")), (2, "max"))
        instance.wait_until(lambda: f"on 2 {PART}" in self.explained(batch), "it to be said")
        self.gpuctl("set", "batch", "max=6")
        self.assertEqual((self.sms_of(batch), self.of(batch, "in_force")), (MOST, "nothing"))
        self.assertIn(KEPT, self.explained(batch))
        later = self.start_program("batch")
        self.assertEqual(self.of(later, "mps_sms"), 6)

    def test_two_programs_that_are_too_many_together(self):
        self.start()
        first = self.start_program("batch")
        self.assertEqual(self.of(first, "in_force"), "nothing")
        second = self.start_program("batch")
        self.assertEqual([self.of(one, "in_force") for one in (first, second)], ["max", "max"])
        for program in (first, second):
            program.tell("non-blocking", WHAT_WAS_THERE, 4 * ROUNDS, MS)
        instance.wait_until(
            lambda: [self.of(one, "granted") for one in (first, second)] == [MOST // 2] * 2, "equal parts"
        )
        for program in (first, second):
            self.assertEqual(program.answer("the launches").split()[:2], ["0", "True"])
        second.end()
        instance.wait_until(lambda: self.of(first, "in_force") == "nothing", "the first to be alone again")

    def test_the_variable_is_as_it_was_afterwards_and_less_stays(self):
        self.start()
        program = OPAQUE.replace('print("ready", flush=True)\n', LEFT)
        for own, left, sms in (
            (None, "None b''", MOST),
            ("100", r"b'100' b'100\n'", MOST),
            ("25", r"b'25' b'25\n'", 2),
        ):
            with self.subTest(own=own):
                batch = self.start_program("batch", program, **({VARIABLE: own} if own else {}))
                self.assertEqual(batch.answer("the variable"), left)
                self.assertEqual(batch.answer("its start"), "ready")
                self.assertEqual(self.of(batch, "mps_sms"), sms)
                self.assertEqual(self.sms_of(batch), sms)
                batch.end()

    def test_one_percentage_for_all_gpus(self):
        """The greatest that any needs; what that does not keep, gpuctl does."""
        self.env.update(SOFTGPU_DEVICES="2", SOFTGPU_SMS="8,16")
        self.start()
        batch = self.start_program("batch")
        (client,) = self.clients("batch")
        self.assertEqual([(one["mps_sms"], one["in_force"]) for one in client["usage"]], [(4, "nothing"), (8, "max")])
        self.assertEqual(self.sms_of(batch), MOST)

    def test_none_where_a_gpu_is_not_managed(self):
        self.env.update(SOFTGPU_DEVICES="2")
        self.start(CONFIG + "[[device]]\nindex = 0\n")
        batch = self.start_program("batch")
        self.assertEqual((self.of(batch, "mps_sms"), self.of(batch, "in_force")), (0, "max"))

    def test_what_it_is_told_of_its_gpu(self):
        self.start()
        program = told_test.Asked(self, "batch")
        told_test.Told.assert_sms(self, program, MOST)
        told_test.Told.assert_right(self, program, MOST)

    def test_nor_of_more_where_a_reserve_leaves_more(self):
        self.start()
        self.gpuctl("set", "ls", "reserve=1", "reserve-mode=strict")
        program = told_test.Asked(self, "batch")
        told_test.Told.assert_sms(self, program, MOST)
        self.assertEqual((self.of(program, "mps_sms"), self.of(program, "sms_told")), (MOST, 0))

    def test_the_next_daemon_hears_of_it(self):
        self.start()
        batch = self.start_program("batch")
        self.daemon.kill()
        self.start_daemon(config=CONFIG)
        instance.wait_until(lambda: self.usage("batch", batch.pid), "it to come back")
        self.assertEqual((self.of(batch, "mps_sms"), self.of(batch, "in_force")), (MOST, "nothing"))


if __name__ == "__main__":
    instance.main()
