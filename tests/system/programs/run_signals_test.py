"""gpuctl run is the program: signals sent to it do what they do to the program alone, and its status is the
program's."""

import json
import signal
import subprocess
import sys
import time

from tests.system.harness import instance
from tests.system.harness.slice_shell import LONG, SliceShell

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
IN_SLICE = (instance.GPUCTL, "run", "--slice", "s")
READY = "ready"
# Says when its handlers are there, and ends by them.
HANDLERS = f"""
import signal, sys, time
def handle(number, frame):
    print("caught", number)
    sys.exit(40 + number)
for number in {[int(number) for number in SIGNALS]}:
    signal.signal(number, handle)
print("{READY}", file=sys.stderr, flush=True)
time.sleep(600)
"""
# Says what its dispositions and its mask are.
DISPOSITIONS = """
import json
lines = open("/proc/self/status").read().splitlines()
names = ("SigIgn", "SigBlk", "SigPnd", "ShdPnd")
print(json.dumps({line.split()[0]: line.split()[1] for line in lines if line[:6] in names}))
"""


class Harness(instance.SystemTest):
    def setUp(self):
        super().setUp()
        for number in SIGNALS:  # whoever runs the tests may ignore some, as nohup does, and programs inherit that
            self.addCleanup(signal.signal, number, signal.signal(number, signal.SIG_DFL))
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        self.gpuctl("create-slice", "other")


class TimedSignals(Harness):
    def test_default_dispositions_end_it_in_the_middle_of_a_kernel(self):
        neighbour = SliceShell(self, (instance.GPUCTL, "run", "--slice", "other"))
        neighbour.do("init")
        neighbour.do("launch", 0, *LONG)
        delays = {}
        for number in SIGNALS:
            shell = SliceShell(self, IN_SLICE)
            shell.do("init")
            shell.do("launch", 0, *LONG)
            instance.wait_until(lambda: (self.usage("s", shell.pid) or {}).get("holding", 0) > 0, "its kernel to run")
            instance.wait_until(
                lambda: self.usage("other", neighbour.pid)["granted"] < instance.SMS, "SMs to be shared"
            )
            shell.process.send_signal(number)
            start = time.monotonic()
            instance.wait_until(
                lambda: self.usage("other", neighbour.pid)["granted"] == instance.SMS,
                "the grant to be free",
                interval=0.001,
            )
            delays[number.name] = time.monotonic() - start
            self.assertEqual(shell.process.wait(), -number)
            self.assertEqual(self.clients("s"), [])
        print("grant free after", {name: f"{delay * 1000:.1f} ms" for name, delay in delays.items()}, file=sys.stderr)
        # Not all three: another program may have the cores while this one waits for its turn to look.
        self.assertLess(sorted(delays.values())[1], 0.1 * instance.SLOWER)
        neighbour.finish(0)


class RunSignals(Harness):
    def ready(self, program):
        instance.wait_until(lambda: READY in program.err(), "the program to be ready")

    def test_the_status_is_that_of_the_program_alone(self):
        for number in SIGNALS:
            statuses = []
            for start in (self.start, lambda *command: self.start_in("s", *command)):
                program = start("sleep", "600")
                instance.wait_until(lambda: self.name_of(program) == "sleep", "the program to begin")
                program.process.send_signal(number)
                statuses.append(program.wait())
            self.assertEqual(statuses, [-number] * 2)

    def name_of(self, program):
        with open(f"/proc/{program.pid}/comm") as file:
            return file.read().strip()

    def test_handlers_run(self):
        for number in SIGNALS:
            results = []
            for start in (self.start, lambda *command: self.start_in("s", *command)):
                program = start(sys.executable, "-c", HANDLERS)
                self.ready(program)
                program.process.send_signal(number)
                results.append((program.wait(), program.out()))
            self.assertEqual(results, [(40 + number, f"caught {int(number)}\n")] * 2)

    def test_a_cuda_program_with_handlers_ends_as_it_likes(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            bench = self.start_bench("s", "work", "--blocks", 512, "--iterations", 10, "--count", 1000000, "--announce")
            bench.wait_started()
            bench.process.send_signal(number)
            self.assertRightResults(bench.report())

    def test_what_is_ignored_stays_ignored(self):
        """As under nohup(1), and where the shell started it in the background."""
        ignore = ["sh", "-c", 'trap "" INT HUP USR1; exec "$@"', "sh"]
        said = []
        for command in ([], IN_SLICE):
            done = subprocess.run(
                [str(word) for word in (*ignore, *command, sys.executable, "-c", DISPOSITIONS)],
                env=self.env,
                capture_output=True,
                text=True,
                timeout=instance.PATIENCE_S,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            said.append(json.loads(done.stdout))
        self.assertEqual(said[0], said[1])
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            self.assertTrue(int(said[1]["SigIgn:"], 16) >> (number - 1) & 1, number)

        shell = SliceShell(self, (*ignore, *IN_SLICE))
        shell.do("init")
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            shell.process.send_signal(number)
        shell.do("launch", 0, 64, 1)  # it goes on
        shell.do("finish")
        self.assertIsNone(shell.process.poll())

    def test_a_bench_that_waits_for_sms_ends_by_the_second(self):
        """The first asks for an end in good order, for which it has to wait."""
        self.gpuctl("set", "s", "max=0")
        bench = self.start_bench("s", "matrixMul")
        instance.wait_until(lambda: (self.usage("s", bench.pid) or {}).get("outstanding", 0) > 0, "it to wait")
        for _ in range(2):  # as timeout(1) does, which counts as one
            bench.process.send_signal(signal.SIGTERM)
            self.wait_until_delivered(bench.pid)
        self.assertIsNone(bench.process.poll())

        def ended():
            bench.process.send_signal(signal.SIGINT)
            return bench.process.poll() is not None

        instance.wait_until(ended, "it to end")
        self.assertEqual(bench.wait(), -signal.SIGINT)

    def wait_until_delivered(self, pid):
        def pending():
            with open(f"/proc/{pid}/status") as status:
                return any(int(line.split()[1], 16) for line in status if line.startswith(("SigPnd:", "ShdPnd:")))

        instance.wait_until(lambda: not pending(), "the signal to be delivered")


if __name__ == "__main__":
    instance.main()
