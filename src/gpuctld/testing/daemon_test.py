"""The gpuctld program itself: command line, configuration, restart, signals.

    daemon_test.py GPUCTLD FAKE_DRIVER [systemd]

FAKE_DRIVER stands in for libcuda.so.1 and knows GPUs of 132, 131 and 130 SMs. "systemd": the program was
built with it.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

from daemon_instance import DRIVERS_TIME_SLICE, UUID, DaemonTestCase, Program, eventually


class DaemonTest(DaemonTestCase):
    def test_starts_answers_and_stops(self):
        self.start()
        status = self.call("GetStatus")["parameters"]
        self.assertEqual([d["sms"] for d in status["devices"]], [132, 131, 130])
        self.assertEqual(status["devices"][0]["uuid"], UUID)
        self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o600)
        self.daemon.send_signal(signal.SIGTERM)
        _, errors = self.daemon.communicate(timeout=20)
        self.assertEqual(self.daemon.returncode, 0)
        self.assertIn("managing Fake", errors)
        self.assertFalse(os.path.exists(self.path))
        self.assertTrue(os.path.exists(self.path + ".state/state.json"))

    def test_help_version_and_mistakes(self):
        for argument, begin in (("--help", "Shares"), ("--version", "gpuctld ")):
            daemon = self.spawn(argument)
            output, errors = daemon.communicate(timeout=20)
            self.assertEqual((daemon.returncode, errors), (0, ""))
            self.assertTrue(output.startswith(begin), output)
        not_usec = "'%s' is not a number of microseconds from 1 to 60000000"
        for arguments, mistake in (
            (["--nonsense=1"], "unknown option '--nonsense'"),
            (["x"], "unexpected argument 'x'"),
            (["--evict-storm=x"], "--evict-storm: " + not_usec % "x"),
            (["--evict-storm", "0"], "--evict-storm: " + not_usec % "0"),
            (["--socket"], "--socket needs a value: --socket PATH"),
            (["--state", "a", "--state", "b"], "--state is given twice; give it once"),
            (["--strict"], "--strict needs --check-config"),
            (
                ["--look", "--probe"],
                "give one of --check-config, --probe, --look, --mps-control, --mps-start and --limit-memory",
            ),
        ):
            daemon = self.spawn(*arguments)
            output, errors = daemon.communicate(timeout=20)
            self.assertEqual((daemon.returncode, output), (2, ""))
            self.assertEqual(errors, f"gpuctld: {mistake}; see 'gpuctld --help'\n")

    def test_check_config(self):
        config = self.path + ".toml"
        for text, mistake in (
            ("[slice.a]\nreserve = 1\n", ""),
            ("[slice.a]\nbar = 1\n", ':2:1: slice."a".bar: unknown key'),
            ('[slice."a/b"]\nweight = 2\n', ':1:8: slice."a/b": no such slice'),
        ):
            with open(config, "w", encoding="utf-8") as file:
                file.write(text)
            daemon = self.spawn("--socket", self.path, "--config", config, "--check-config")
            output, errors = daemon.communicate(timeout=60)
            self.assertEqual((daemon.returncode, output), (1 if mistake else 0, ""), errors)
            self.assertIn(mistake, errors)
            self.assertEqual(bool(errors), bool(mistake), errors)
            self.assertFalse(os.path.exists(self.path))
            self.assertFalse(os.path.exists(self.path + ".state"))

    def test_killed_daemon_comes_back_with_its_slices(self):
        self.start()
        self.call("CreateSlice", path="ls", settings={"reserve": 8, "reserve_mode": "strict"})
        self.call("CreateSlice", path="batch", settings={"max": 100})
        before = Program(self.path, "batch")
        before.demand(132)
        self.assertTrue(eventually(lambda: before.granted() == 100))
        self.kill()
        self.assertTrue(os.path.exists(self.path))  # no daemon was left to remove it
        self.assertEqual(before.granted(), 100)  # and the program runs on
        with self.assertRaises((EOFError, ConnectionError)):
            before.varlink.receive()
        self.start()
        slices = {s["path"]: s for s in self.call("ListSlices")["parameters"]["slices"]}
        self.assertEqual(sorted(slices), ["/", "batch", "ls"])
        self.assertEqual(slices["batch"]["max"], 100)
        self.assertEqual(slices["ls"]["reserve_mode"], "strict")
        after = Program(self.path, "batch", resumed=True)
        after.demand(132)
        self.assertTrue(eventually(lambda: after.granted() == 100))
        before.close()
        after.close()

    def test_the_former_reserve_mode_is_read_from_files_and_refused_in_calls(self):
        self.start("--config", self.write("c.toml", '[slice.ls]\nreserve = 8\nreserve_mode = "lend"\n'))
        refused = self.call("SetSlice", path="ls", settings={"reserve_mode": "lend"})
        self.assertEqual(refused["error"], "io.gpuctl.InvalidValue")
        self.assertIn("active with a reserve_hold of 1 ms took its place", refused["parameters"]["reason"])
        ls = self.call("GetSlice", path="ls")["parameters"]["slice"]
        self.assertEqual((ls["reserve_mode"], ls["reserve_hold_ms"]), ("active", 1))
        self.daemon.send_signal(signal.SIGTERM)
        self.assertIn('slice."ls".reserve_mode: lend is no more', self.daemon.communicate(timeout=20)[1])

    def test_time_sliced_programs_wait_for_no_sms(self):
        self.start()
        self.call("CreateSlice", path="ls", settings={"reserve": 8})
        self.call("CreateSlice", path="batch", settings={"max": 100})
        batch = Program(self.path, "batch")
        batch.demand(132)
        self.assertTrue(eventually(lambda: batch.granted() == 100))
        ls = Program(self.path, "ls")
        self.assertEqual(ls.granted(), 132)
        ls.demand(132)
        time.sleep(0.05)
        self.assertEqual((ls.granted(), batch.granted()), (132, 100))
        batch.close()
        ls.close()

    def test_an_sm_is_granted_to_another_once_it_was_left(self):
        self.pretend_mps()
        self.start("--config", self.write("c.toml", "[daemon]\nevict_deadline_ms = 60000\n"))
        self.call("CreateSlice", path="ls", settings={"reserve": 8})
        self.call("CreateSlice", path="batch", settings={"weight": 200})
        batch, ls = Program(self.path, "batch"), Program(self.path, "ls")
        batch.demand(132)
        self.assertTrue(eventually(lambda: batch.granted() == 132))
        ls.demand(8)
        self.assertTrue(eventually(lambda: batch.granted() == 124))
        time.sleep(0.05)
        self.assertEqual(ls.granted(), 0)
        batch.apply()
        self.assertTrue(eventually(lambda: ls.granted() == 8))
        batch.close()
        ls.close()

    def test_how_long_turns_last_follows_from_the_slices(self):
        config = self.write("c.toml", "")
        self.start("--config", config)
        self.call("CreateSlice", path="ls", settings={"priority": 10})
        self.call("CreateSlice", path="batch", settings={})
        batch = Program(self.path, "batch")
        self.assertEqual(batch.time_slice(), DRIVERS_TIME_SLICE)
        self.assertIn("no program has tried yet", self.note_about_turns())
        ls = Program(self.path, "ls")
        self.assertEqual((ls.time_slice(), batch.time_slice()), (DRIVERS_TIME_SLICE, 1))
        batch.say_time_slice(1, 1, 5)
        usage = self.call("GetSlice", path="batch")["parameters"]["clients"][0]["usage"][0]
        self.assertEqual((usage["time_slice"], usage["time_slice_us"], usage["channel_groups"]), ("in force", 1, 5))
        self.assertIn("as gpuctld has set it", self.note_about_turns())
        self.call("SetSlice", path="batch", settings={"priority": 11})
        self.assertEqual((ls.time_slice(), batch.time_slice()), (1, DRIVERS_TIME_SLICE))
        ls.close()
        self.assertTrue(eventually(lambda: batch.time_slice() == DRIVERS_TIME_SLICE))
        self.write("c.toml", "[daemon]\ntime_slices = false\n")
        self.daemon.send_signal(signal.SIGHUP)
        self.assertTrue(eventually(lambda: batch.time_slice() == 0))
        self.assertIn("time_slices = false", self.note_about_turns())
        batch.close()

    def note_about_turns(self):
        notes = self.call("GetStatus")["parameters"]["notes"]
        found = [note for note in notes if note.startswith("how long a turn lasts")]
        self.assertEqual(len(found), 1, notes)
        return found[0]

    def test_grant_of_a_killed_client_is_free_at_once(self):
        self.pretend_mps()
        self.start()
        self.call(
            "CreateSlice", path="ls", settings={"reserve": 8, "reserve_mode": "strict"}
        )  # so that the others obey
        stays = Program(self.path, "/")
        stays.demand(132)
        code = (
            "import sys, time; sys.path.insert(0, sys.argv[1]); import daemon_instance as t\n"
            'p = t.Program(sys.argv[2], "/"); p.demand(132); print("ready", flush=True); time.sleep(600)'
        )
        client = subprocess.Popen(
            [sys.executable, "-c", code, os.path.dirname(os.path.abspath(__file__)), self.path], stdout=subprocess.PIPE
        )
        client.stdout.readline()
        self.assertTrue(eventually(lambda: stays.granted() == 62))
        client.kill()
        self.assertTrue(eventually(lambda: stays.granted() == 124))
        client.communicate()
        stays.close()

    def test_wrong_configuration_is_named_and_nothing_starts(self):
        config = self.write(
            "c.toml", '[daemon]\nevict_deadline_ms = 50\nevict_daedline_ms = 5\n[slice.ls]\nreserve = "8"\n'
        )
        lines = self.fails("--config", config)
        self.assertEqual(len(lines), 2)
        self.assertTrue(lines[0].startswith(f"gpuctld: {config}:3:1: daemon.evict_daedline_ms: unknown key"), lines[0])
        self.assertTrue(
            lines[1].startswith(f'gpuctld: {config}:5:11: slice."ls".reserve: must be an integer'), lines[1]
        )
        self.assertEqual(len(self.fails("--config", config + ".none")), 1)

    def test_configured_memory_that_does_not_fit_is_kept_as_far_as_it_fits(self):
        config = self.write("c.toml", '[slice.a]\nmemory_min = "100G"\n[slice.b]\nmemory_min = "100G"\n')
        line = "the memory_min of slice b, 100G, does not fit GPU 2, which has 141G: it is 72192M there"
        check = self.spawn("--socket", self.path, "--config", config, "--check-config")
        output, errors = check.communicate(timeout=60)
        self.assertEqual((check.returncode, output), (0, ""))
        self.assertIn("gpuctld: " + line, errors.splitlines())
        self.start("--config", config)
        self.assertIn(line, self.call("GetStatus")["parameters"]["notes"])

    def test_a_configured_reserve_that_does_not_fit_counts_as_far_as_it_fits(self):
        config = self.write("c.toml", "[slice.ls]\nreserve = 100\n[slice.other]\nreserve = 31\n")
        lines = [
            "the reserve of slice other, 31 SMs, does not fit GPU 2, which has 130: it is 30 there",
        ]
        check = self.spawn("--socket", self.path, "--config", config, "--check-config")
        output, errors = check.communicate(timeout=60)
        self.assertEqual((check.returncode, output), (0, ""))
        self.assertEqual(errors.splitlines(), ["gpuctld: " + line for line in lines])
        self.start("--config", config)
        notes = self.call("GetStatus")["parameters"]["notes"]
        self.assertEqual([note for note in notes if "reserve of slice" in note], lines)
        slices = {node["path"]: node for node in self.call("ListSlices")["parameters"]["slices"]}
        self.assertEqual((slices["ls"]["reserve"], slices["other"]["reserve"]), (100, 31))
        said = self.call("SetSlice", path="ls", settings={"weight": 7})["parameters"]
        reserved = [
            f"all {sms} SMs of GPU {gpu} are reserved now: none is left for others while these are kept"
            for gpu, sms in ((1, 131), (2, 130))
        ]
        self.assertEqual(said["notes"], reserved)
        said = self.call("SetSlice", path="other", settings={"weight": 7})["parameters"]
        self.assertEqual(said["notes"], [*lines, *reserved])
        self.daemon.terminate()
        _, errors = self.daemon.communicate(timeout=60)
        self.daemon = None
        self.assertIn("gpuctld: " + lines[0], errors.splitlines())

    def test_a_configured_reserve_that_fits_no_gpu_is_a_mistake(self):
        config = self.write("c.toml", "[slice.ls]\nreserve = 200\n[slice.other]\nreserve = 57\n")
        self.assertEqual(
            self.fails("--config", config),
            [
                f'gpuctld: {config}:4:11: slice."other".reserve: reserve of slice other does not fit: '
                "57 asked, 56 available"
            ],
        )

    def test_a_reload_exchanges_reserves(self):
        config = self.write("c.toml", "[slice.a]\nreserve = 30\n[slice.b]\nreserve = 100\n")
        self.start("--config", config)
        self.write("c.toml", "[slice.a]\nreserve = 100\n[slice.b]\nreserve = 30\n")
        self.daemon.send_signal(signal.SIGHUP)

        def reserves():
            slices = {node["path"]: node for node in self.call("ListSlices")["parameters"]["slices"]}
            return slices["a"]["reserve"], slices["b"]["reserve"]

        self.assertTrue(eventually(lambda: reserves() == (100, 30)), reserves())
        self.kill()
        self.write("c.toml", "[slice.a]\nreserve = 30\n[slice.b]\nreserve = 100\n")
        self.start("--config", config)
        self.assertEqual(reserves(), (30, 100))

    def test_a_change_that_cannot_be_stored_is_made_and_says_so(self):
        self.start()
        os.remove(self.path + ".state/state.json")  # so it must be written as a whole
        os.mkdir(self.path + ".state/state.json.new")
        os.mkdir(self.path + ".state/state.json.new/full")
        replies = [
            self.call("CreateSlice", path="ls", settings={}),
            self.call("SetSlice", path="ls", settings={"max": 9}),
            self.call("CreateSlice", path="gone", settings={}),
            self.call("DeleteSlice", path="gone"),
        ]
        for reply in replies:
            (note,) = reply["parameters"]["notes"]
            self.assertIn("the slices would not survive a restart", note)
        shutil.rmtree(self.path + ".state/state.json.new")
        self.assertTrue(
            eventually(lambda: "notes" not in self.call("SetSlice", path="ls", settings={"max": 9})["parameters"])
        )

    def test_configured_devices(self):
        self.start(
            "--config", self.write("c.toml", f'[[device]]\nindex = 2\n[[device]]\nuuid = "{UUID.upper()[4:]}"\n')
        )
        self.assertEqual([d["sms"] for d in self.call("GetStatus")["parameters"]["devices"]], [130, 132])
        self.kill()
        self.assertEqual(len(self.fails("--config", self.write("d.toml", "[[device]]\nindex = 9\n"))), 1)

    def test_reload_applies_all_or_nothing(self):
        config = self.write("c.toml", "[slice.ls]\nreserve = 8\n")
        self.start("--config", config)

        def reserve():
            return self.call("GetSlice", path="ls")["parameters"]["slice"]["reserve"]

        self.assertEqual(reserve(), 8)
        self.write("c.toml", "[slice.ls]\nreserve = 9\nwieght = 1\n")
        self.daemon.send_signal(signal.SIGHUP)
        while "stays as it was" not in (line := self.daemon.stderr.readline()):
            self.assertTrue(line, "gpuctld ended")
        self.assertEqual(reserve(), 8)
        self.write("c.toml", "[slice.ls]\nreserve = 9\n")
        self.daemon.send_signal(signal.SIGHUP)
        self.assertTrue(eventually(lambda: reserve() == 9))

    def test_a_key_that_has_moved_is_said_at_start_at_a_reload_and_by_check_config(self):
        config = self.write("c.toml", "[daemon]\nlease_ms = 7\n[lab]\nblock_target_us = 7\n")
        note = f"gpuctld: {config}:2:1: daemon.lease_ms: is lease_ms of [lab] now, for experiments\n"
        lab = f"gpuctld: {config}:3:2: lab: is for experiments, and refused by --strict\n"
        for options, status, said in (((), 0, note), (("--strict",), 1, note + lab)):
            check = self.spawn("--socket", self.path, "--config", config, "--check-config", *options)
            output, errors = check.communicate(timeout=60)
            self.assertEqual((check.returncode, output, errors), (status, "", said))
        self.start("--config", config)
        self.daemon.send_signal(signal.SIGHUP)
        lines = []
        while not lines or "was read again" not in lines[-1]:
            lines.append(self.daemon.stderr.readline())
            self.assertTrue(lines[-1], "gpuctld ended")
        self.assertEqual(lines.count(note), 2, lines)

    def test_only_one_daemon_for_a_socket_and_a_state(self):
        self.start()
        self.assertEqual(self.fails(), [f"gpuctld: {self.path}: another daemon listens there"])
        other = self.spawn("--socket", self.path + "2", "--state", self.path + ".state")
        _, errors = other.communicate(timeout=20)
        self.assertEqual(errors, f"gpuctld: {self.path}.state: in use by another gpuctld\n")
        self.assertTrue(self.answers())

    def test_a_file_that_is_no_socket_is_left_alone(self):
        self.write("s", "precious")
        daemon = self.spawn("--socket", self.path)
        _, errors = daemon.communicate(timeout=20)
        self.assertEqual(errors, f"gpuctld: {self.path}: exists and is not a socket\n")
        with open(self.path) as file:
            self.assertEqual(file.read(), "precious")

    def test_a_place_where_nothing_can_be_made_is_named(self):
        file = self.write("file", "")
        self.assertEqual(
            self.fails("--state", file + "/x"), [f"gpuctld: cannot make the state directory {file}/x: Not a directory"]
        )
        os.makedirs(self.path + ".state/lock")
        self.assertEqual(
            self.fails(),
            [
                f"gpuctld: cannot use the state directory {self.path}.state: cannot open "
                f"{self.path}.state/lock: Is a directory"
            ],
        )
        daemon = self.spawn("--socket", file + "/s")
        _, errors = daemon.communicate(timeout=20)
        self.assertEqual(errors, f"gpuctld: {file}/s: cannot make a socket there: Not a directory\n")

    def test_broken_state_is_kept_aside(self):
        os.mkdir(self.path + ".state")
        self.write("s.state/state.json", '{"version":')
        self.start()
        self.assertEqual(len(self.call("ListSlices")["parameters"]["slices"]), 1)
        self.assertTrue(os.path.exists(self.path + ".state/state.json.bad"))

    def test_socket_activation_and_notification(self):
        if not self.WITH_SYSTEMD:
            self.skipTest("built without libsystemd")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path)
        listener.listen()
        news = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        news.settimeout(20)
        news.bind(self.path + ".notify")
        start = (
            'import os, sys\nos.dup2(int(sys.argv[1]), 3)\nos.environ.update(LISTEN_FDS="1", '
            'LISTEN_PID=str(os.getpid()), WATCHDOG_USEC="200000", WATCHDOG_PID=str(os.getpid()))\n'
            "os.execv(sys.argv[2], sys.argv[2:])"
        )
        config = self.write("c.toml", "")
        self.daemon = subprocess.Popen(
            [
                sys.executable,
                "-c",
                start,
                str(listener.fileno()),
                self.GPUCTLD,
                "--config",
                config,
                "--state",
                self.directory,
            ],
            env=dict(self.environment, NOTIFY_SOCKET=self.path + ".notify"),
            pass_fds=[listener.fileno()],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

        def heard(what):
            return eventually(lambda: what in news.recv(4096).decode())

        self.assertTrue(heard("READY=1"))
        self.assertTrue(heard("WATCHDOG=1"))
        self.assertEqual(len(self.call("ListSlices")["parameters"]["slices"]), 1)
        self.daemon.send_signal(signal.SIGHUP)
        self.assertTrue(heard("RELOADING=1\nMONOTONIC_USEC="))
        self.assertTrue(heard("READY=1"))
        self.daemon.send_signal(signal.SIGTERM)
        self.assertTrue(heard("STOPPING=1"))
        self.daemon.communicate(timeout=20)
        self.assertEqual(self.daemon.returncode, 0)
        self.assertTrue(os.path.exists(self.path))  # it belongs to the service manager
        listener.close()
        news.close()


if __name__ == "__main__":
    DaemonTest.GPUCTLD, DaemonTest.FAKE_DRIVER = (os.path.abspath(argument) for argument in sys.argv[1:3])
    DaemonTest.WITH_SYSTEMD = "systemd" in sys.argv[3:]
    unittest.main(argv=sys.argv[:1], verbosity=2)
