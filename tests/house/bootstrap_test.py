#!/usr/bin/env python3
"""What scripts/bootstrap.sh installs: it says so and, on a terminal, asks; it never upgrades systemd, and takes the
Boost that there is. It goes on without a tool that only tests need."""

import os
import pathlib
import pty
import subprocess
import unittest

BOOTSTRAP = pathlib.Path(__file__).resolve().parents[2] / "scripts/bootstrap.sh"
# systemd 252.1 is installed. apt-get and apt-cache only say what they are asked.
FAKES = """
dpkg-query() { case "$*" in *libsystemd0*) printf 252.1 ;; *) return 1 ;; esac; }
apt-cache() {
  case "$*" in
    show*libboost-dev) printf 'Package: libboost-dev\\nVersion: %s\\n' "${BOOST-}" ;;
    madison*) printf 'libsystemd-dev | %s | somewhere\\n' "${AVAILABLE-}" ;;
  esac
}
apt-get() { printf 'apt-get %s\\n' "$*" >&2; }
"""


def all_said(terminal):
    """What was written to a terminal whose other side is closed: it comes in parts, as the kernel hands it over."""
    try:
        while part := os.read(terminal, 4096):
            yield part.decode()
    except OSError:  # EIO: there is no more
        pass


class Bootstrap(unittest.TestCase):
    def bash(self, script, **more):
        text = f"source {BOOTSTRAP}\n{FAKES}\n{script}"
        return subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=False, timeout=60, **more)

    @unittest.skipUnless(os.geteuid() == 0, "only root installs")
    def test_systemd_stays_as_it_is(self):
        install = "install_packages libsystemd-dev meson"
        same = self.bash(install, env={**os.environ, "AVAILABLE": "252.1"}, stdin=subprocess.DEVNULL)
        self.assertIn("installing these packages of Debian: libsystemd-dev meson\n", same.stderr)
        self.assertRegex(same.stderr, r"apt-get .*install .* libsystemd-dev=252\.1 meson\n")
        newer = self.bash(install, env={**os.environ, "AVAILABLE": "252.2"}, stdin=subprocess.DEVNULL)
        self.assertIn("going on without libsystemd-dev: it would upgrade systemd\n", newer.stderr)
        self.assertRegex(newer.stderr, r"apt-get .*install .*-recommends meson\n")
        self.assertEqual((same.returncode, newer.returncode), (0, 0))

    def test_it_goes_on_without_tools_that_cannot_be_had(self):
        """Nothing is there, and `timeout` only says what it is to run."""
        install = """
build=/nowhere
command() { return 1; }
python3() { return 1; }
timeout() { printf '%s\\n' "$*" >&2; return "$STATUS"; }
install_tools
"""
        for status, without in (("0", 0), ("1", 1)):
            done = self.bash(install, env={**os.environ, "STATUS": status}, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 0, done.stderr)
            for tool in ("ruff", "kubernetes-validate"):
                self.assertRegex(done.stderr, rf"installing from PyPI, into build/tools: {tool} [\d.]+\n")
                self.assertRegex(done.stderr, rf"pip install .*--target /nowhere/tools {tool}==[\d.]+\n")
                self.assertEqual(done.stderr.count(f"going on without {tool}\n"), without)

    @unittest.skipUnless(os.geteuid() == 0, "only root installs")
    def test_it_takes_the_boost_that_is_recent_enough(self):
        """Debian 13 has no libboost1.81-dev. What there is may be known only after `apt-get update`."""
        for version, wanted in (
            ("1.83.0.2", "libboost-dev"),
            ("1.74.0.3", "libboost1.81-dev"),
            ("", "libboost1.81-dev"),
        ):
            done = self.bash('install_packages "${packages[@]}"', env={**os.environ, "BOOST": version})
            self.assertRegex(done.stderr, rf"apt-get .*install .* {wanted} ")
        updated = "apt-get() { case $* in *update) BOOST=1.83 ;; *) printf 'apt-get %s\\n' \"$*\" >&2 ;; esac; }"
        done = self.bash(f"{updated}; install_packages libboost1.81-dev", stdin=subprocess.DEVNULL)
        self.assertRegex(done.stderr, r"apt-get .*install .*-recommends libboost-dev\n")

    def test_on_a_terminal_it_asks(self):
        for answer, agreed in (("\n", True), ("y\n", True), ("n\n", False)):
            ours, theirs = pty.openpty()
            os.write(ours, answer.encode())
            done = subprocess.run(
                ["bash", "-c", f"source {BOOTSTRAP}; agree things a b && echo agreed"],
                stdin=theirs,
                stdout=subprocess.PIPE,
                stderr=theirs,
                text=True,
                check=False,
                timeout=60,
            )
            os.close(theirs)
            said = "".join(all_said(ours))
            os.close(ours)
            self.assertIn("installing things: a b", said)
            self.assertIn("go on? [Y/n]", said)
            self.assertEqual(done.stdout, "agreed\n" if agreed else "")


if __name__ == "__main__":
    unittest.main()
