"""Runs as a service of a booted systemd (container.sh): gpuctl's units there, as an administrator meets them."""

import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import time
import unittest

COMMANDS = json.loads(pathlib.Path("/results/commands").read_text())  # of pages, which this test runs
DROP_IN = pathlib.Path("/run/systemd/system/gpuctld.service.d/software.conf")
DEVICES = pathlib.Path("/run/cdi/gpuctl.json")
CONFIG = pathlib.Path("/etc/gpuctl.toml")
MOST_EXPOSED = 1.5  # what systemd-analyze security says at most
NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
DAEMON = ("setpriv", "--reuid=gpuctl", "--regid=gpuctl", "--clear-groups")
ASK_MPS = """
import socket
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect("/run/gpuctld/mps")
    asked.sendall(b"get_server_list\\n")
    asked.shutdown(socket.SHUT_WR)
    print(asked.recv(4096).decode())
"""
LIMITS = {"cgroup": "/system.slice", "gpus": [{"uuid": "GPU-0", "bytes": "1"}]}
ASK_FOR_LIMITS = ASK_MPS.replace("/mps", "/limits").replace("get_server_list", json.dumps(json.dumps(LIMITS))[1:-1])

MPS = pathlib.Path("/usr/bin/nvidia-cuda-mps-control")
PIPES = pathlib.Path("/run/gpuctl/mps/shared")
STANDS_IN_FOR_MPS = pathlib.Path("/results/stands_in_for_mps.sh")


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def systemctl(*arguments):
    done = run("systemctl", *arguments)
    assert done.returncode == 0, f"systemctl {' '.join(arguments)}: {done.stdout}{done.stderr}"
    return done.stdout


def as_the_page_says(page, begins):
    """Runs the commands of the page that begin so, as root, and returns what they print."""
    said = []
    for one in [one for one in COMMANDS if one[0] == page and one[1].startswith(begins)]:
        COMMANDS.remove(one)
        done = run("sh", "-c", one[1].removeprefix("sudo "))
        assert done.returncode == 0, f"{one[1]}: {done.stdout}{done.stderr}"
        said.append(done.stdout)
    return said


def show(name, unit="gpuctld.service"):
    return systemctl("show", "--value", f"--property={name}", unit).strip()


def wait_for(condition, what):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def gpuctl(*arguments, user=()):
    return run(*user, "gpuctl", *arguments)


class Units(unittest.TestCase):
    """In the order of the names: each finds what the one before left."""

    def test_1_a_client_starts_the_daemon_which_fails_closed_without_a_gpu(self):
        as_the_page_says("INSTALL", "systemctl enable")
        self.assertEqual(show("ActiveState"), "inactive")
        done = gpuctl("status", user=NOBODY)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no GPU", done.stdout + done.stderr)
        self.assertEqual(show("ActiveState"), "active")
        pid = show("MainPID")
        status = pathlib.Path("/proc", pid, "status").read_text()
        self.assertNotIn("Uid:\t0", status)
        self.assertEqual(re.findall(r"CapEff:\s*(\w+)", status), ["0000000000000020"])  # CAP_KILL
        self.assertEqual(run("id", "-nu", re.findall(r"Uid:\s*(\d+)", status)[0]).stdout.strip(), "gpuctl")
        self.assertTrue(show("StatusText"))

    def test_2_only_the_daemon_may_ask_its_helpers(self):
        refused = run(*NOBODY, "/usr/bin/python3", "-c", ASK_MPS)
        self.assertIn("PermissionError", refused.stderr)
        allowed = run(*DAEMON, "/usr/bin/python3", "-c", ASK_MPS)
        self.assertEqual(allowed.returncode, 0, allowed.stderr)
        self.assertIn("no MPS serves there", allowed.stdout)
        refused = run(*NOBODY, "/usr/bin/python3", "-c", ASK_FOR_LIMITS)
        self.assertIn("PermissionError", refused.stderr)
        allowed = run(*DAEMON, "/usr/bin/python3", "-c", ASK_FOR_LIMITS)  # where NVIDIA's library is not
        self.assertEqual((allowed.stdout.strip(), allowed.stderr), ('{"outcomes":[]}', ""))

    def test_3_on_the_software_gpu_a_restart_keeps_the_slices(self):
        DROP_IN.parent.mkdir(parents=True)
        start = re.search(r"ExecStart=(.+)", systemctl("cat", "gpuctld.service"))[1]
        DROP_IN.write_text(f"[Service]\nExecStart=\nExecStart={start} --software-gpu\nWatchdogSec=2s\n")
        systemctl("daemon-reload")
        systemctl("restart", "gpuctld.service")
        self.assertEqual(gpuctl("create-slice", "kept", "--reserve", "2").returncode, 0)
        systemctl("restart", "gpuctld.service")
        self.assertIn("kept", gpuctl("list").stdout)

    def test_3a_mps_is_started_by_root_in_a_unit_of_its_own(self):
        """A control program of our own stands in for NVIDIA's, which needs a GPU."""
        MPS.write_text(STANDS_IN_FOR_MPS.read_text())
        MPS.chmod(0o755)
        CONFIG.write_text('[daemon]\nmps = "manage"\n')
        systemctl("reload", "gpuctld.service")
        self.assertIn("MPS is started for the first program of a slice", gpuctl("status").stdout)
        self.assertEqual(gpuctl("run", "--slice", "/", "true", user=NOBODY).returncode, 0)
        self.assertIn(f"MPS is in {PIPES}: gpuctld started it", gpuctl("status").stdout)
        pid = (PIPES / "nvidia-cuda-mps-control.pid").read_text().strip()
        self.assertIn("gpuctld-mps-start@", pathlib.Path("/proc", pid, "cgroup").read_text())
        self.assertEqual(PIPES.stat().st_uid, 0)
        variables = pathlib.Path("/proc", pid, "environ").read_text().split("\0")
        self.assertIn("GPUCTL_MPS_SERVER=/run/gpuctld/io.gpuctl", variables)
        self.assertRegex(next(one for one in variables if one.startswith("LD_PRELOAD=")), "/libgpuslice.so$")
        asked = run(*DAEMON, "/usr/bin/python3", "-c", ASK_MPS.replace("get_server_list", "@shared get_server_list"))
        self.assertEqual(asked.stdout.strip(), "ok", asked.stderr)
        refused = run(*NOBODY, "/usr/bin/python3", "-c", ASK_MPS.replace("/mps", "/mps-start"))
        self.assertIn("PermissionError", refused.stderr)
        systemctl("restart", "gpuctld.service")
        self.assertIn(f"MPS is in {PIPES}: gpuctld started it", gpuctl("status").stdout)
        self.assertTrue(pathlib.Path("/proc", pid).exists(), "it goes on when the daemon ends")
        run(*DAEMON, "/usr/bin/python3", "-c", ASK_MPS.replace("get_server_list", "@shared quit"))
        wait_for(lambda: "MPS is in" not in gpuctl("status").stdout, "it to end")
        CONFIG.unlink()
        MPS.unlink()
        systemctl("reload", "gpuctld.service")

    def test_3b_a_program_in_a_scope_is_what_it_is_without_and_systemctl_reaches_it(self):
        shows = (
            "env | grep -vE '^(_|INVOCATION_ID)='; ls -l /proc/self/fd | wc -l; echo '$HOME' $0; echo said >&2; exit 7"
        )
        without, within = (gpuctl("run", *scope, "--slice", "kept", "sh", "-c", shows) for scope in ((), ("--scope",)))
        self.assertEqual((without.returncode, without.stderr), (7, "said\n"))
        self.assertEqual((within.returncode, within.stderr), (7, "said\n"))
        self.assertEqual(*(sorted(done.stdout.splitlines()) for done in (without, within)))
        refused = gpuctl("run", "--scope", "--slice", "none", "true")
        self.assertEqual(
            (refused.returncode, refused.stderr), (125, "gpuctl: slice 'none' does not exist; known: /, kept\n")
        )
        self.assertEqual(gpuctl("run", "--scope", "--slice", "kept", "true", user=NOBODY).returncode, 125)

        program = subprocess.Popen(["gpuctl", "run", "--scope", "--slice", "kept", "sleep", "600"])
        cgroup = pathlib.Path("/proc", str(program.pid), "cgroup")
        wait_for(lambda: "/gpuctl-run-" in cgroup.read_text(), "its scope")
        unit = cgroup.read_text().strip().rpartition("/")[2]
        self.assertRegex(unit, rf"^gpuctl-run-{program.pid}-[0-9a-f]{{8}}\.scope$")
        systemctl("set-property", "--runtime", unit, "TasksMax=5")
        self.assertEqual(show("TasksMax", unit), "5")
        systemctl("kill", unit)
        self.assertEqual(program.wait(30), -signal.SIGTERM)
        wait_for(lambda: show("LoadState", unit) == "not-found", "the scope to be gone")

    def test_4_one_that_is_killed_or_hangs_is_started_again(self):
        for number, end in enumerate((signal.SIGKILL, signal.SIGSTOP), 1):
            pid = int(show("MainPID"))
            os.kill(pid, end)
            wait_for(lambda n=number: int(show("NRestarts")) == n and show("ActiveState") == "active", end.name)
            self.assertNotEqual(int(show("MainPID")), pid)
            self.assertIn("kept", gpuctl("list").stdout)

    def test_4a_devices_for_containers_follow_the_slices(self):
        def names():
            devices = json.loads(DEVICES.read_text())["devices"] if DEVICES.exists() else []
            return [device["name"] for device in devices]

        page = next(pathlib.Path("/usr").glob("**/doc/gpuctl/docs/troubleshooting.md")).read_text()
        (command,) = re.findall(r"^\| podman does not find the device.*\| `sudo ([^`]+)`", page, re.MULTILINE)
        done = run(*shlex.split(command))  # where there is no /run/cdi
        self.assertEqual((done.returncode, names()), (0, ["kept"]), done.stderr)
        DEVICES.unlink()
        as_the_page_says("containers", "sudo systemctl")
        self.assertEqual(names(), ["kept"])
        for _ in range(5):  # each comes while systemd still works on the one before
            gpuctl("create-slice", "more")
            wait_for(lambda: names() == ["kept", "more"], "the device of the slice that was made")
            gpuctl("delete-slice", "more")
            wait_for(lambda: names() == ["kept"], "the device to go with its slice")

    def test_5_a_reload_with_a_mistake_fails_and_changes_nothing(self):
        CONFIG.write_text("[slice.fine]\nweight = 50\n")
        systemctl("reload", "gpuctld.service")
        wait_for(lambda: "fine" in gpuctl("list").stdout, "the slice of the file")
        CONFIG.write_text('[slice.fine]\nweight = "much"\n[slice.other]\nweight = 1\n')
        done = run("systemctl", "reload", "gpuctld.service")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(show("ActiveState"), "active")
        shown = gpuctl("list").stdout
        self.assertIn("fine", shown)
        self.assertNotIn("other", shown)
        CONFIG.unlink()

    def test_5a_the_journal_has_what_happened(self):
        gpuctl("create-slice", "batch", "--owner", "nobody")
        self.assertNotEqual(gpuctl("create-slice", "mine", user=NOBODY).returncode, 0)

        def journal_has_both():
            run("journalctl", "--sync")
            return all(run("journalctl", "-q", f"GPUCTL_EVENT={event}").stdout for event in ("created", "refused"))

        wait_for(journal_has_both, "the journal to have them")
        of_slice, explained, refused = as_the_page_says("events", "journalctl")
        self.assertIn("batch", of_slice)
        self.assertIn("Subject: A call was refused to user", explained)
        self.assertIn("mine", refused)
        self.assertNotIn("kept", of_slice)

    def test_6_little_is_exposed(self):
        said = run("systemd-analyze", "security", "--no-pager", "gpuctld.service").stdout.strip().splitlines()[-1]
        score = float(re.search(r"Overall exposure level for \S+: ([\d.]+)", said)[1])
        self.assertLessEqual(score, MOST_EXPOSED, said)
        units = [path for path in pathlib.Path(show("FragmentPath")).parent.iterdir() if path.name.startswith("gpuctl")]
        self.assertGreaterEqual(len(units), 8)
        verified = run("systemd-analyze", "verify", "--man=no", *map(str, units))
        self.assertEqual((verified.returncode, verified.stderr), (0, ""))

    def test_7_a_stop_ends_it_and_the_sockets_go(self):
        as_the_page_says("INSTALL", "systemctl disable")
        self.assertEqual(systemctl("list-units", "--state=active,activating", "--no-legend", "gpuctl*"), "")
        self.assertNotEqual(gpuctl("status").returncode, 0)
        self.assertFalse(pathlib.Path("/run/gpuctld/io.gpuctl").exists())
        wanted = [path.name for path in pathlib.Path("/etc/systemd/system").rglob("gpuctl*")]
        self.assertEqual(wanted, [])
        as_the_page_says("INSTALL", "rm")
        self.assertFalse(CONFIG.exists() or DEVICES.exists())
        self.assertEqual(COMMANDS, [], "of pages, which nobody ran")


if __name__ == "__main__":
    as_the_page_says("INSTALL", "systemd-sysusers")
    os.environ.pop("GPUCTL_SOCKET", None)
    result = unittest.main(verbosity=2, failfast=True, exit=False).result
    if not result.wasSuccessful():
        print(run("systemctl", "status", "--no-pager", "--full", "--lines=30", "gpuctld*").stdout)
        print(run("systemctl", "--no-pager", "--failed").stdout)
        raise SystemExit(1)
