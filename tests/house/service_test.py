#!/usr/bin/env python3
"""The unit files, as systemd reads them: service_test.py UNITS SYSUSERS GPUCTLD GPUCTL. Skipped without
systemd-analyze."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

UNITS, SYSUSERS, GPUCTLD, GPUCTL = (pathlib.Path(path).resolve() for path in sys.argv[1:5])
ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
# In tenths, as systemd-analyze security says it.
MOST_EXPOSED, MOST_OF_HELPER, MOST_OF_LOOK, MOST_OF_LIMITS = 10, 15, 20, 20
NAMES = (
    *("gpuctld.service", "gpuctld.socket"),
    *("gpuctld-probe.socket", "gpuctld-probe@.service"),
    *("gpuctld-mps.socket", "gpuctld-mps@.service"),
    *("gpuctld-mps-start.socket", "gpuctld-mps-start@.service"),
    *("gpuctld-look.socket", "gpuctld-look@.service"),
    *("gpuctl-cdi.path", "gpuctl-cdi.service", "gpuctl-cdi-changed.service"),
    *("gpuctld-limits.socket", "gpuctld-limits@.service"),
)


def analyze(*arguments):
    return subprocess.run(
        ["systemd-analyze", *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
    )


def installed_as(program):
    return str(GPUCTLD if program[1] else GPUCTL)


class Service(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.units = [pathlib.Path(place.name) / name for name in NAMES]
        for unit in self.units:
            # The daemon is where it was built, not where it will be installed.
            text = (UNITS / unit.name).read_text()
            text = re.sub(r"/\S*/gpuctl(d?)\b(?= |$)", installed_as, text, flags=re.MULTILINE)
            unit.write_text(text)
        self.unit = self.units[0]
        self.text = self.unit.read_text()

    def test_verify_is_clean(self):
        done = analyze("verify", "--man=no", *self.units)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_verify_sees_mistakes(self):
        self.unit.write_text(self.text.replace("MemoryMax=", "MemoryMost="))
        self.assertIn("MemoryMost", analyze("verify", "--man=no", self.unit).stderr)

    def exposure(self, unit, most):
        return analyze("security", "--offline=true", f"--threshold={most}", unit)

    def test_little_is_exposed(self):
        done = self.exposure(self.unit, MOST_EXPOSED)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotEqual(self.exposure(self.unit, 1).returncode, 0)

    def test_budgets(self):
        for budget in ("MemoryMax=", "TasksMax=", "LogRateLimitBurst=", "LimitNOFILE="):
            self.assertRegex(self.text, rf"(?m)^{budget}\d")

    def test_what_was_used_outlives_the_boot_and_a_purge_removes_it(self):
        (directory,) = re.findall(r"^StateDirectory=(.*)$", self.text, re.MULTILINE)
        self.assertIn(f"/var/lib/{directory}/usage.db", (ROOT / "man/gpuctld.service.8").read_text())
        self.assertIn(f" /var/lib/{directory} ", (ROOT / "packaging/debian/gpuctld.postrm").read_text())

    def test_a_purge_removes_the_options_that_an_administrator_gives_the_exporter(self):
        debian = ROOT / "packaging/debian"
        unit = (debian / "gpuctl-exporter.service").read_text()
        (options,) = re.findall(r"^EnvironmentFile=-(.*)$", unit, re.MULTILINE)
        self.assertIn(f"rm -f {options}\n", (debian / "gpuctl-exporter.postrm").read_text())

    def test_it_gets_a_processor_before_others(self):
        for what in (r"Nice=-\d", r"CPUWeight=1\d{3}"):
            self.assertRegex(self.text, rf"(?m)^{what}")

    def test_a_reload_checks_first(self):
        reloads = re.findall(r"^ExecReload=(.*)$", self.text, re.MULTILINE)
        self.assertEqual(reloads[0], f"{GPUCTLD} --check-config --probe-socket /run/gpuctld/probe")

    def test_the_daemon_has_a_user_of_its_own_who_may_send_signals(self):
        (user,) = re.findall(r"^User=(.*)$", self.text, re.MULTILINE)
        self.assertRegex(SYSUSERS.read_text(), rf"(?m)^u {user} ")
        self.assertEqual(re.findall(r"^AmbientCapabilities=(.*)$", self.text, re.MULTILINE), ["CAP_KILL"])
        self.assertEqual(re.findall(r"^CapabilityBoundingSet=(.*)$", self.text, re.MULTILINE), ["CAP_KILL"])

    def test_devices_for_containers_follow_the_slices(self):
        path, service, changed = (unit.read_text() for unit in self.units[10:13])
        self.assertIn("PathChanged=/run/gpuctld/state.json\n", path)
        self.assertIn(f"Unit={self.units[12].name}\n", path)
        self.assertIn(f"ExecStart=systemctl restart --no-block {self.units[11].name}\n", changed)
        self.assertRegex(service, rf"(?m)^After=.*{self.units[12].name}$")  # no change is missed in between
        self.assertIn(f"ExecStart={GPUCTL} cdi generate --output /run/cdi/gpuctl.json\n", service)
        self.assertIn("Also=gpuctl-cdi.service\n", path)  # at boot the slices are there without a change
        done = self.exposure(self.units[11], MOST_EXPOSED)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def check_helper(self, units, option, command, capabilities="", orders=("Requires", "After")):
        """The daemon connects where a process of root's answers, and nobody else may. `capabilities`: what it has."""
        socket, helper = (unit.read_text() for unit in units)

        def values(text, name):
            return re.findall(rf"^{name}=(.*)$", text, re.MULTILINE)

        (asked_at,) = re.findall(rf"^ExecStart=.* {option} (\S+)", self.text, re.MULTILINE)
        self.assertEqual(values(socket, "ListenStream"), [asked_at])
        self.assertEqual(values(socket, "SocketUser"), values(self.text, "User"))
        self.assertEqual(values(socket, "SocketMode"), ["0600"])
        for order in orders:
            self.assertIn(units[0].name, values(self.text, order)[0].split())
        self.assertEqual(values(helper, "ExecStart"), [f"{GPUCTLD} {command}"])
        self.assertEqual(values(helper, "StandardOutput"), ["socket"])
        self.assertEqual(values(helper, "CapabilityBoundingSet"), [capabilities])
        self.assertEqual(values(helper, "User"), [])

    def test_the_driver_is_asked_elsewhere(self):
        self.assertIn("MemoryDenyWriteExecute=yes", self.text)
        self.check_helper(self.units[2:4], "--probe-socket", "--probe")

    def test_who_uses_a_gpu_past_the_daemon_is_looked_for_elsewhere(self):
        few = "CAP_SYS_PTRACE CAP_DAC_READ_SEARCH"
        self.check_helper(self.units[8:10], "--look-socket", "--look", few, orders=("Wants", "After"))
        done = self.exposure(self.units[9], MOST_OF_LOOK)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_control_groups_are_limited_elsewhere(self):
        few = "CAP_SYS_ADMIN CAP_DAC_OVERRIDE"
        units = [self.units[NAMES.index(f"gpuctld-limits{kind}")] for kind in (".socket", "@.service")]
        self.check_helper(units, "--limits-socket", "--limit-memory", few, orders=("Wants", "After"))
        done = self.exposure(units[1], MOST_OF_LIMITS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_mps_is_given_commands_elsewhere(self):
        self.assertIn("PrivateDevices=yes", self.text)
        self.assertNotIn("DeviceAllow=", self.text)
        self.check_helper(self.units[4:6], "--mps-control-socket", "--mps-control")
        for unit in (self.units[0], self.units[5]):  # both look for MPS in /tmp
            self.assertNotRegex(unit.read_text(), r"(?m)^PrivateTmp=")
        done = self.exposure(self.units[5], MOST_OF_HELPER)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_mps_is_started_elsewhere(self):
        few = "CAP_SETUID CAP_SETGID CAP_DAC_OVERRIDE CAP_KILL CAP_SYS_PTRACE CAP_SYS_NICE CAP_IPC_OWNER CAP_IPC_LOCK"
        self.check_helper(self.units[6:8], "--mps-start-socket", "--mps-start", few)
        self.assertIn("RuntimeDirectory=gpuctl/mps\n", self.units[7].read_text())


if __name__ == "__main__":
    if not shutil.which("systemd-analyze"):
        print("skipped: no systemd-analyze here")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
