"""gpuctld among files that another user made, or that are damaged: it does not hang, believes nobody else, loses
nothing.

    hostile_files_test.py GPUCTLD FAKE_DRIVER
"""

import os
import shutil
import subprocess
import sys
import unittest

from daemon_instance import DaemonTestCase, eventually

STRANGER = 65534
AS_ROOT = unittest.skipIf(os.geteuid() != 0, "needs root to become somebody else")


class MpsPidFile(DaemonTestCase):
    def modes(self):
        return {device["mode"] for device in self.call("GetStatus")["parameters"]["devices"]}

    def pid_file(self):
        return os.path.join(self.directory, "nvidia-cuda-mps-control.pid")

    def test_a_fifo_hangs_nobody(self):
        os.mkfifo(self.pid_file())
        self.start()
        self.assertEqual(self.modes(), {"time-sliced"})
        self.call("CreateSlice", path="ls", settings={"reserve": 8})
        self.assertEqual(self.modes(), {"time-sliced"})

    @AS_ROOT
    def test_a_process_of_another_user_is_not_mps(self):
        self.start()
        os.chmod(self.directory, 0o755)
        program = shutil.copy(shutil.which("sleep"), os.path.join(self.directory, "nvidia-cuda-mps-control"))
        pretender = subprocess.Popen([program, "600"], user=STRANGER, group=STRANGER, extra_groups=[])
        self.addCleanup(pretender.communicate)
        self.addCleanup(pretender.kill)
        with open(f"/proc/{pretender.pid}/comm") as comm:
            self.assertEqual(comm.read(), "nvidia-cuda-mps\n")
        self.write("nvidia-cuda-mps-control.pid", str(pretender.pid))
        self.assertEqual(self.modes(), {"time-sliced"})

    @AS_ROOT
    def test_a_pid_file_of_another_user_does_not_count(self):
        self.pretend_mps()
        os.chown(self.pid_file(), STRANGER, STRANGER)
        self.start()
        self.assertEqual(self.modes(), {"time-sliced"})
        os.chown(self.pid_file(), os.geteuid(), os.getegid())
        self.assertTrue(eventually(lambda: self.modes() == {"mps"}))


class StateFile(DaemonTestCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(os.umask, os.umask(0o022))

    def make_state(self, text):
        os.makedirs(self.path + ".state", mode=0o700, exist_ok=True)
        return self.write("s.state/state.json", text)

    def slices(self):
        return {node["path"]: node for node in self.call("ListSlices")["parameters"]["slices"]}

    def read(self, path):
        with open(path) as file:
            return file.read()

    def test_one_bad_field_loses_that_field_alone(self):
        damaged = (
            '{"version":1,"slices":[{"path":"a","settings":{"weight":"x","priority":5}},'
            '{"path":"b","settings":{"weight":0,"max":9}}],"configured":[]}'
        )
        file = self.make_state(damaged)
        self.start()
        slices = self.slices()
        self.assertEqual(sorted(slices), ["/", "a", "b"])
        self.assertEqual((slices["a"]["weight"], slices["a"]["priority"]), (100, 5))
        self.assertEqual((slices["b"]["weight"], slices["b"]["max"]), (100, 9))
        self.assertEqual(self.read(file + ".bad"), damaged)
        self.assertNotEqual(self.read(file), damaged)
        self.daemon.terminate()
        _, errors = self.daemon.communicate(timeout=60)
        self.daemon = None
        lines = [line for line in errors.splitlines() if file in line]
        self.assertEqual(len(lines), 3, errors)
        self.assertEqual(
            lines[0], f"gpuctld: {file}: slices[0].settings.weight must be an integer, not a string; left out"
        )
        self.assertIn(f"gpuctld: {file}: slice b: weight", lines[1])
        self.assertEqual(lines[2], f"gpuctld: {file}: as it was found, it is kept as {file}.bad")

    def test_a_change_that_is_not_whole_does_not_count(self):
        self.start()
        self.call("CreateSlice", path="a", settings={"weight": 7})
        self.call("SetSlice", path="a", settings={"weight": 8})
        self.kill()
        file = self.path + ".state/state.json"
        os.truncate(file, os.path.getsize(file) - 1)
        self.start()
        self.assertEqual(self.slices()["a"]["weight"], 7)
        self.daemon.terminate()
        _, errors = self.daemon.communicate(timeout=60)
        self.daemon = None
        said = f"gpuctld: {file}: change 2 and what follows, because it is not whole; left out"
        self.assertIn(said, errors.splitlines())
        self.assertTrue(os.path.exists(file + ".bad"))

    def test_each_damaged_file_is_kept(self):
        damaged = [f'{{"version":1,"slices":[{text}],"configured":[]}}' for text in ("1", "2", "3", "2")]
        for text in damaged:
            file = self.make_state(text)
            self.start()
            self.kill()
        kept = sorted(name for name in os.listdir(os.path.dirname(file)) if ".bad" in name)
        self.assertEqual(kept, ["state.json.bad", "state.json.bad.1", "state.json.bad.2"])
        self.assertEqual([self.read(os.path.join(os.path.dirname(file), name)) for name in kept], damaged[:3])

    def test_a_file_that_cannot_be_read_stops_the_start_and_stays(self):
        file = self.make_state("")
        os.remove(file)
        os.mkdir(file)
        self.assertEqual(
            self.fails(),
            [f"gpuctld: {file}: is not a regular file; gpuctld does not start, so that no slice in it is lost"],
        )
        self.assertTrue(os.path.isdir(file))

    def test_what_others_may_write_is_not_trusted(self):
        text = '{"version":1,"slices":[{"path":"a","settings":{}}],"configured":[]}'
        file = self.make_state(text)
        os.chmod(file, 0o666)
        (line,) = self.fails()
        self.assertIn(f"{file}: other users may write to it, so it is not trusted; gpuctld does not start", line)
        self.assertEqual(self.read(file), text)
        os.chmod(file, 0o600)
        os.chmod(os.path.dirname(file), 0o777)
        (line,) = self.fails()
        self.assertEqual(
            line,
            f"gpuctld: cannot use the state directory {self.path}.state: other users may write to it, "
            "so it is not trusted",
        )

    @AS_ROOT
    def test_what_another_user_made_is_not_trusted(self):
        file = self.make_state('{"version":1,"slices":[{"path":"a","settings":{}}],"configured":[]}')
        os.chown(file, STRANGER, STRANGER)
        (line,) = self.fails()
        self.assertIn(f"{file}: belongs to user {STRANGER} and is not trusted", line)
        os.chown(file, 0, 0)
        os.chown(self.path + ".state", STRANGER, STRANGER)
        (line,) = self.fails()
        self.assertIn(f"{self.path}.state: belongs to user {STRANGER} and is not trusted", line)
        os.chown(self.path + ".state", 0, 0)
        self.start()
        self.assertEqual(sorted(self.slices()), ["/", "a"])


if __name__ == "__main__":
    DaemonTestCase.GPUCTLD, DaemonTestCase.FAKE_DRIVER = (os.path.abspath(argument) for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1], verbosity=2)
