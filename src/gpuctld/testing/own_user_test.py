"""gpuctld as gpuctld.service runs it: as a user of its own with CAP_KILL, while other processes ask the driver and
give commands for MPS.

    own_user_test.py GPUCTLD FAKE_DRIVER

Needs root and setpriv(1); skipped without.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import unittest

from daemon_instance import DaemonTestCase, eventually

SKIPPED = 77
OWN = 65534
CAP_KILL = 1 << 5
# Becomes the daemon with the listening socket that it inherits.
START = (
    'import os, sys\nos.dup2(int(sys.argv[1]), 3)\nos.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))\n'
    "os.execv(sys.argv[2], sys.argv[2:])"
)
ATTACHED = (
    "import sys, time; sys.path.insert(0, sys.argv[1]); import daemon_instance as t\n"
    'p = t.Program(sys.argv[2], "/"); print("ready", flush=True); time.sleep(600)'
)

# MPS's control program, which terminates clients for root alone.
CONTROL = """#!/bin/sh
cd "$CUDA_MPS_PIPE_DIRECTORY"
read -r verb server client
case $verb in
  get_server_list) echo 10 ;;
  get_client_list) cat clients ;;
  terminate_client)
    if [ "$(id -u)" = 0 ]; then : > clients; echo 0
    else echo "Insufficient privileges for UID $(id -u)."; echo 800; fi ;;
esac
"""


class OwnUserTestCase(DaemonTestCase):
    MPS_SOCKET = True
    LOOKS = False
    CONFIG = ""

    def setUp(self):
        super().setUp()
        if not self.as_user(OWN, lambda: os.access(self.GPUCTLD, os.X_OK)):
            self.skipTest("another user cannot run the daemon from here")
        os.chmod(self.directory, 0o755)
        programs = os.path.join(self.directory, "bin")
        os.mkdir(programs)
        os.chmod(self.write("bin/nvidia-cuda-mps-control", CONTROL), 0o755)
        self.environment["PATH"] = f"{programs}:{self.environment['PATH']}"
        self.asked = 0
        self.serve("probe", "--probe")
        self.serve("mps", "--mps-control")
        if self.LOOKS:
            self.begin_to_look()
        self.start_as_service()

    def listen(self, name):
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(os.path.join(self.directory, name))
        os.chmod(os.path.join(self.directory, name), 0o666)
        listener.listen()
        return listener

    def serve(self, name, *options, before=()):
        listener = self.listen(name)
        threading.Thread(target=self.answer, args=(listener, options, before), daemon=True).start()

    def answer(self, listener, options, before):
        """What the service manager does for gpuctld-probe.socket and the like."""
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:  # the test is over
                return
            with connection:
                self.asked += "--probe" in options
                command = [*before, self.GPUCTLD, *options]
                subprocess.run(command, env=self.environment, stdin=connection, stdout=connection, check=False)

    def start_as_service(self):
        state = os.path.join(self.directory, "state")
        os.mkdir(state, 0o700)
        os.chown(state, OWN, OWN)
        listener = self.listen("s")
        config = self.write("c.toml", self.CONFIG)
        drop = [
            *("setpriv", f"--reuid={OWN}", f"--regid={OWN}", "--clear-groups", "--no-new-privs"),
            *("--bounding-set=-all,+kill", "--inh-caps=-all,+kill", "--ambient-caps=-all,+kill"),
        ]
        self.daemon = subprocess.Popen(
            [
                *(*drop, sys.executable, "-c", START, str(listener.fileno()), self.GPUCTLD, "--config", config),
                *("--state", state, "--probe-socket", os.path.join(self.directory, "probe")),
                *(("--look-socket", os.path.join(self.directory, "look")) if self.LOOKS else ()),
                *(("--mps-control-socket", os.path.join(self.directory, "mps")) if self.MPS_SOCKET else ()),
            ],
            env=dict(self.environment, LD_LIBRARY_PATH=""),
            pass_fds=[listener.fileno()],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.assertTrue(eventually(lambda: self.answers() and self.devices(), seconds=60))

    def devices(self):
        return [device["sms"] for device in self.call("GetStatus")["parameters"]["devices"]]

    def attached(self):
        """A program of root's that has attached."""
        client = subprocess.Popen(
            [sys.executable, "-c", ATTACHED, os.path.dirname(os.path.abspath(__file__)), self.path],
            stdout=subprocess.PIPE,
        )
        self.addCleanup(client.communicate)
        self.addCleanup(client.kill)
        client.stdout.readline()
        return client

    def ended_under_mps(self):
        """What becomes of the work of a client of an MPS that root started."""
        self.pretend_mps()
        client = self.attached()
        self.write("clients", f"{client.pid}\n")
        (ended,) = self.call("Kill", pid=client.pid)["parameters"]["clients"]
        self.assertEqual((ended["signals"], ended["ended"]), (["SIGTERM"], True))
        return ended["mps"]


class OwnUserTest(OwnUserTestCase):
    def test_it_has_no_driver_and_one_capability(self):
        self.assertEqual((self.devices(), self.asked), ([132, 131, 130], 1))
        with open(f"/proc/{self.daemon.pid}/maps") as maps:
            text = maps.read()
        self.assertIn("gpuctld", text)
        self.assertNotIn("libcuda", text)
        self.assertNotIn("fake_driver", text)
        with open(f"/proc/{self.daemon.pid}/status") as status:
            fields = dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
        self.assertEqual(fields["Uid"].split(), [str(OWN)] * 4)
        self.assertEqual(int(fields["CapEff"], 16), CAP_KILL)

    def test_it_ends_programs_of_any_user(self):
        (ended,) = self.call("Kill", pid=self.attached().pid)["parameters"]["clients"]
        self.assertEqual((ended["signals"], ended["ended"]), (["SIGTERM"], True))

    def test_it_ends_the_work_of_a_client_of_root_s_mps(self):
        self.assertEqual(self.ended_under_mps(), "terminated")

    def test_mps_is_given_no_other_command(self):
        done = subprocess.run(
            [self.GPUCTLD, "--mps-control"], input="quit\n", capture_output=True, text=True, check=False
        )
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertRegex(done.stdout, r"^failed: 'quit' is no command for MPS[^\n]*\n$")

    def test_its_own_user_is_nobody_to_it(self):
        create = {"path": "x", "settings": {}}
        refused = self.as_user(OWN, lambda: self.call("CreateSlice", **create).get("error"))
        self.assertEqual(refused, "io.gpuctl.PermissionDenied")
        self.assertIsNone(self.call("CreateSlice", **create).get("error"))


class Looking(OwnUserTestCase):
    """Beside programs that use a GPU past gpuctl, seen with the capabilities of gpuctld-look@.service alone."""

    LOOKS = True
    OTHER = 65533

    def begin_to_look(self):
        if os.path.exists("/sys/module/nvidia_uvm/refcnt"):
            self.skipTest("who uses the real device decides here whether it is looked for anybody")
        device = os.path.realpath(self.write("nvidia-uvm", ""))
        os.chmod(device, 0o644)
        few = "-all,+sys_ptrace,+dac_read_search"
        drop = ("setpriv", "--no-new-privs", f"--bounding-set={few}", f"--inh-caps={few}")
        self.serve("look", "--look", "--look-for", device, before=drop)
        self.past, self.comes_and_goes = (self.use(device) for _ in range(2))

    def use(self, device):
        os.makedirs(os.path.join(self.directory, "driver"), exist_ok=True)
        driver = shutil.copy(self.FAKE_DRIVER, os.path.join(self.directory, "driver", "libcuda.so.1"))
        program = subprocess.Popen(
            [
                *("setpriv", f"--reuid={self.OTHER}", "--clear-groups", "env", f"LD_PRELOAD={driver}"),
                *("sh", "-c", 'exec 9<"$0" && echo ready && read -r x', device),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.addCleanup(program.communicate)
        self.assertEqual(program.stdout.readline(), b"ready\n")
        return program


class LookTest(Looking):
    def notes(self):
        said = self.call("GetStatus")["parameters"]["notes"]
        return [note for note in said if "without gpuctl's library" in note]

    def test_a_program_past_gpuctl_is_told_of_once_it_was_seen_twice(self):
        self.assertEqual(self.notes(), [], "it may only look for the GPUs")
        self.comes_and_goes.communicate()
        self.assertTrue(eventually(self.notes, seconds=60))
        (note,) = self.notes()
        self.assertRegex(note, f"^process {self.past.pid} of user {self.OTHER}, in .*: nothing limits it$")
        events = self.call("Events")["parameters"]["events"]
        (event,) = [one for one in events if one["kind"] == "unmanaged"]
        self.assertEqual((event["pid"], event["uid"], event["command"]), (self.past.pid, self.OTHER, "sh"))


class MandatoryTest(Looking):
    """CAP_KILL is all that it takes to end such programs."""

    CONFIG = f'[daemon]\nmandatory = "user:{Looking.OTHER}"\n'

    def test_a_program_past_gpuctl_is_ended(self):
        self.assertEqual(self.past.wait(60), -signal.SIGTERM)
        kinds = {one["kind"] for one in self.call("Events")["parameters"]["events"] if one["pid"] == self.past.pid}
        self.assertEqual(kinds, {"unmanaged", "killed"})


class WithoutMpsSocketTest(OwnUserTestCase):
    MPS_SOCKET = False

    def test_it_ends_the_work_of_a_client_of_root_s_mps(self):
        self.assertRegex(self.ended_under_mps(), "^MPS was started by another user.* with --mps-control-socket")


if __name__ == "__main__":
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        print("skipped: needs root and setpriv")
        sys.exit(SKIPPED)
    OwnUserTestCase.GPUCTLD, OwnUserTestCase.FAKE_DRIVER = (os.path.abspath(argument) for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1], verbosity=2)
