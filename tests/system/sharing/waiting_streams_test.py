"""A stream of a program waits for a value, and the program has few hardware queues: what it launches into another
stream gets on, as it does without gpuctl. None of it goes into a stream of the library's, which might share the queue
of the one that waits."""

from tests.system.harness import instance, pretended_mps
from tests.system.sharing import opaque_test, reserve_by_parts_test

MOST = 4
CONFINED = "lab.latency_target_us = 1\n"
# Two streams, which are in two queues. In the order that it is told it launches into both. Then each of them in turn
# waits for the host, which looks whether a launch in the other one ends: of the last such launch `explain` tells.
LOOP = r"""
word = POINTER()
call("cuMemHostAlloc", ctypes.byref(word), SIZE(4), 2)
letter = ctypes.cast(word, ctypes.POINTER(ctypes.c_uint32))
first, second = stream("non-blocking"), stream("non-blocking")
print("ready", flush=True)
import time
for line in sys.stdin:
    order, patience = line.split()
    streams = [first, second] if order == "forwards" else [second, first]
    for on in streams:
        append(on, 1, 0)
        call("cuStreamSynchronize", on)
    # To and fro: what is waited for is always written before it in the program.
    for round in range(8):
        now, after = streams[round % 2], streams[1 - round % 2]
        append(now, 4, 0)
        call("cuStreamWriteValue32_v2", now, word, 2 + round, 0)
        call("cuStreamWaitValue32_v2", after, word, 2 + round, 0)
    for on in streams: call("cuStreamSynchronize", on)
    stood = 0
    for waiting, other in (streams, streams[::-1]):
        letter[0] = 0
        call("cuStreamWaitValue32_v2", waiting, word, 1, 0)
        append(waiting, 2, 0)
        append(other, 3, 0)
        end = time.monotonic() + float(patience)
        while cuda.cuStreamQuery(other) != 0 and time.monotonic() < end: time.sleep(0.001)
        stood += cuda.cuStreamQuery(other) != 0
        waited = cuda.cuStreamQuery(waiting) != 0
        letter[0] = 1
        for on in streams: call("cuStreamSynchronize", on)
        if not waited: stood = "it did not wait"
    print(stood, flush=True)
"""


def with_two_streams(program):
    return program.split('print("ready"')[0] + LOOP


class WaitingStreams(instance.SystemTest):
    warp_instruction_ns = 0

    def setUp(self):
        super().setUp()
        pretended_mps.start_with_queues(self, 120)

    def assertGetsOn(self, text, queues, look=lambda program: None):
        """`look` is called for a program that has launched all, in each order."""
        for order in ("forwards", "backwards"):
            program = self.start_script_in("s", with_two_streams(text), CUDA_DEVICE_MAX_CONNECTIONS=str(queues))
            for _ in range(3):
                self.assertEqual(program.ask(order, 10 * instance.SLOWER), "0", order)
            look(program)
            program.end()

    def test_launches_that_are_confined(self):
        self.start_daemon(config=CONFINED)
        self.gpuctl("create-slice", "s", "--max", MOST)
        for queues in (2, 4, 3, 7):
            with self.subTest(queues=queues):
                self.assertGetsOn(opaque_test.PROGRAM, queues)

    def test_launches_that_could_be_evicted(self):
        self.start_daemon("--evict-storm", 2000)
        self.gpuctl("create-slice", "s")
        for queues in (2, 4):
            with self.subTest(queues=queues):
                self.assertGetsOn(reserve_by_parts_test.PROGRAM, queues)

    def test_no_workers_are_launched_with_two_queues(self):
        """They would wait in both: behind the stream that waits, and behind what follows the launch."""
        self.start_daemon()
        self.gpuctl("create-slice", "s")

        def waits(program):
            reasons = {kernel["name"]: kernel["reason"] for kernel in self.kernels_of(program, "append")}
            return "waits for a value" in reasons["append"]

        def in_original_form(program):  # the library tells of it now and then
            instance.wait_until(lambda: waits(program), "it to launch in original form")

        def with_workers(program):
            self.assertFalse(waits(program))

        for queues, look in ((2, in_original_form), (4, with_workers)):
            with self.subTest(queues=queues):
                self.assertGetsOn(reserve_by_parts_test.PROGRAM, queues, look)


if __name__ == "__main__":
    instance.main()
