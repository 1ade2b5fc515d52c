"""gpuctld dies by SIGKILL while programs hold SMs: the next one grants these to nobody else before the programs are
back, have ended, or have had their time.

    crash_test.py GPUCTLD FAKE_DRIVER
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest

from daemon_instance import DaemonTestCase, Program, eventually

GRACE_S = 3  # a machine that takes longer than that for a step shows nothing of it

HOLDER = (
    "import sys; sys.path.insert(0, sys.argv[1]); import daemon_instance as t\n"
    'p = t.Program(sys.argv[2], "batch"); p.demand(132); print("attached", flush=True)\n'
    "for line in sys.stdin:\n"
    '    if line == "again\\n": p = t.Program(sys.argv[2], "batch", resumed=True)\n'
    '    if line == "follow\\n": p.demand(132); p.apply()\n'
    '    if line == "apply\\n": p.apply()\n'
    "    print(p.granted(), flush=True)"
)


# Obeys when it is told to; says which SMs it then uses.
PROGRAM = (
    "import struct, sys; sys.path.insert(0, sys.argv[1]); import daemon_instance as t\n"
    "for line in sys.stdin:\n"
    "    verb, number = line.split()\n"
    '    if verb == "attach": p = t.Program(sys.argv[2], sys.argv[3], resumed=number == "1")\n'
    '    if verb == "demand": p.demand(int(number))\n'
    "    while True:\n"
    "        epoch = p.stub[t.GRANT + t.EPOCH : t.GRANT + t.EPOCH + 4]\n"
    "        granted = p.granted()\n"
    "        p.stub[t.USAGE + t.APPLIED : t.USAGE + t.APPLIED + 4] = epoch\n"
    "        if p.stub[t.GRANT + t.EPOCH : t.GRANT + t.EPOCH + 4] == epoch: break\n"
    "    print(min(granted, struct.unpack_from('<I', p.stub, t.USAGE)[0]), flush=True)"
)


class Talker:
    """A program in a process of its own."""

    def __init__(self, test, slice_path):
        command = [sys.executable, "-c", PROGRAM, os.path.dirname(os.path.abspath(__file__)), test.path, slice_path]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        test.addCleanup(self.process.communicate)
        test.addCleanup(self.process.kill)
        self.uses = 0
        self.attached, self.resumed = False, 0

    def tell(self, verb, number=0):
        self.process.stdin.write(f"{verb} {number}\n")
        self.process.stdin.flush()
        self.uses = int(self.process.stdout.readline())

    def attach(self):
        self.tell("attach", self.resumed)
        self.attached, self.resumed = True, 1


class ManyCrashes(DaemonTestCase):
    CRASHES, SMS = 30, 132

    def start_quiet(self):
        config = self.write(
            "c.toml",
            "[daemon]\nalways_preemptible = true\nevict_deadline_ms = 10000\n[lab]\nlease_ms = 60000\n"
            "[slice.ls]\nreserve = 20\n[slice.batch]\nweight = 200\n",
        )
        self.daemon = subprocess.Popen(
            [self.GPUCTLD, "--socket", self.path, "--config", config], env=self.environment, stderr=subprocess.DEVNULL
        )
        self.assertTrue(eventually(self.answers, seconds=60), "gpuctld does not answer")

    def set_writable(self, writable):
        record = self.path + ".state/attached.json.new"
        if os.path.isdir(record) == (not writable):
            return
        if writable:
            os.rmdir(record)
            return
        while not os.path.isdir(record):  # the daemon may be about to write it
            with contextlib.suppress(FileNotFoundError):
                os.remove(record)
            with contextlib.suppress(FileExistsError):
                os.mkdir(record)

    def test_no_sm_is_in_use_twice_however_often_it_dies(self):
        self.pretend_mps()
        chance = random.Random(52)
        self.start_quiet()
        # Of several programs in "ls" each may start in what is kept for it.
        programs = [Talker(self, name) for name in ("ls", "batch", "batch", "/", "/")]
        for crash in range(self.CRASHES):
            for _ in range(chance.randrange(5, 25)):
                program = chance.choice(programs)
                if not program.attached:
                    program.attach()
                elif chance.random() < 0.5:
                    program.tell("demand", chance.choice((0, 1, 8, 60, 132)))
                else:
                    program.tell("obey")
                if chance.random() < 0.1:
                    self.set_writable(chance.random() < 0.5)
                used = sum(program.uses for program in programs)
                self.assertLessEqual(used, self.SMS, f"after {crash} crashes")
            self.daemon.kill()
            self.daemon.wait()
            for program in programs:
                program.attached = False
            self.start_quiet()
        self.set_writable(True)
        for program in programs:
            program.attach()
            program.tell("demand", 0)

        def last_has_all():
            programs[-1].tell("obey")
            return programs[-1].uses == self.SMS

        programs[-1].tell("demand", self.SMS)
        self.assertTrue(eventually(last_has_all, seconds=60), "nothing is lost")


class Crash(DaemonTestCase):
    def setUp(self):
        super().setUp()
        os.truncate(os.open(self.log_path(), os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC), 0)
        self.pretend_mps()
        self.start_logged()
        self.call("CreateSlice", path="ls", settings={"reserve": 8})
        self.call("CreateSlice", path="batch", settings={"weight": 200})

    def log_path(self):
        return os.path.join(self.directory, "log")

    def log(self):
        with open(self.log_path()) as file:
            return file.read()

    def start_logged(self):
        with open(self.log_path(), "a") as log:
            self.daemon = subprocess.Popen(
                [self.GPUCTLD, "--socket", self.path, "--config", self.write("c.toml", self.CONFIG)],
                env=self.environment,
                stderr=log,
            )
        self.assertTrue(eventually(self.answers, seconds=60), "gpuctld does not answer")

    CONFIG = "[daemon]\nevict_deadline_ms = 1\n"

    def crash(self):
        self.daemon.kill()
        self.daemon.wait()
        self.start_logged()

    def holder(self):
        """A process with all SMs of a GPU, and a function that tells it something and returns what it is granted."""
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, os.path.dirname(os.path.abspath(__file__)), self.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "attached\n")

        def tell(what=""):
            process.stdin.write(what + "\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        self.assertTrue(eventually(lambda: tell() == 132, seconds=60))
        return process, tell

    def newcomer(self):
        program = Program(self.path, "ls")
        self.addCleanup(program.close)
        program.demand(8)
        return program

    def grace_is_over(self):
        return "has not come back" in self.log()

    def test_a_program_that_does_not_come_back_keeps_its_sms_for_a_while(self):
        process, _ = self.holder()
        process.send_signal(signal.SIGSTOP)  # it is not to come back
        self.crash()
        newcomer = self.newcomer()
        self.assertEqual([client["pid"] for client in self.call("ListClients")["parameters"]["clients"]], [os.getpid()])
        granted = newcomer.granted()
        self.assertTrue(granted == 0 or self.grace_is_over(), self.log())
        self.assertTrue(eventually(lambda: newcomer.granted() == 132, seconds=60))  # it is alone
        self.assertTrue(self.grace_is_over(), self.log())

    def test_what_a_program_held_is_free_when_it_has_ended(self):
        process, _ = self.holder()
        self.crash()
        newcomer = self.newcomer()
        granted = newcomer.granted()
        self.assertTrue(granted == 0 or self.grace_is_over(), self.log())
        process.kill()
        self.assertTrue(eventually(lambda: newcomer.granted() == 132, seconds=60))

    def test_a_program_that_comes_back_gives_way_as_usual(self):
        _, tell = self.holder()
        self.crash()
        newcomer = self.newcomer()
        start = time.monotonic()
        back, granted = tell("again"), newcomer.granted()
        if not self.grace_is_over() and time.monotonic() - start < GRACE_S:
            self.assertEqual((back, granted), (132, 0))
        tell("follow")
        self.assertTrue(eventually(lambda: tell() == 124, seconds=60))
        self.assertTrue(eventually(lambda: tell("apply") == 124 and newcomer.granted() == 8, seconds=60))

    def test_the_file_says_who_holds_what_and_forgets_it(self):
        process, _ = self.holder()
        file = self.path + ".state/attached.json"

        def attached():
            with open(file) as text:
                return json.load(text)["attached"]

        (held,) = attached()
        self.assertEqual((held["pid"], held["slice"], held["sms"]), (process.pid, "batch", 132))
        self.assertEqual(os.stat(file).st_mode & 0o777, 0o600)
        process.kill()
        self.assertTrue(eventually(lambda: attached() == [], seconds=60))

    def test_a_damaged_file_is_named_and_does_not_stop_the_start(self):
        self.daemon.kill()
        self.daemon.wait()
        file = self.path + ".state/attached.json"
        with open(file, "w") as text:
            text.write("{")
        self.start_logged()
        self.assertIn(f"{file}: not a JSON object; what programs hold is not known", self.log())
        self.assertEqual(self.newcomer().reply["parameters"]["slice"], "ls")


if __name__ == "__main__":
    DaemonTestCase.GPUCTLD, DaemonTestCase.FAKE_DRIVER = (os.path.abspath(argument) for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1], verbosity=2)
