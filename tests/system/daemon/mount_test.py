"""Slices as directories: gpuctl-mount."""

import errno
import os
import pathlib
import pwd
import select
import signal
import subprocess
import sys
import unittest

import bench.lab.client  # noqa: F401 - where the package is
import gpuctl
from gpuctl import amounts
from tests.system.daemon import python_test
from tests.system.harness import instance, pages

OTHERS = ("procs", "stat", "pressure", "events")
ROOT = pathlib.Path(__file__).resolve().parents[3]


def has_fuse(python):
    return subprocess.run([python, "-c", "import pyfuse3"], capture_output=True).returncode == 0


# Debian's Python has the library from a package; another one may have it too.
PYTHON = next((one for one in ("/usr/bin/python3", sys.executable) if os.path.exists(one) and has_fuse(one)), None)


class Settings(unittest.TestCase):
    def test_each_of_the_interface_is_one(self):
        with_others = {*amounts.LIFTED.values()} | {f"{name}_per_gpu" for name in amounts.AMOUNTS}
        self.assertEqual(set(gpuctl.SETTINGS), set(python_test.fields_of("SliceSettings")) - with_others)


class WithoutItsLibrary(unittest.TestCase):
    def run_with(self, word):
        script = "import runpy, sys; sys.modules['pyfuse3'] = None; sys.argv.pop(0); runpy.run_path(sys.argv[0])"
        return subprocess.run(
            [sys.executable, "-c", script, str(ROOT / "packaging/gpuctl-mount"), word],
            env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
        )

    def test_it_says_what_to_install(self):
        ran = self.run_with("/")
        said = "gpuctl-mount: there is no pyfuse3: install python3-pyfuse3\n"
        self.assertEqual((ran.returncode, ran.stderr), (1, said))

    def test_it_says_its_options(self):
        ran = self.run_with("--help")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertIn("--socket", ran.stdout)


class Stat(unittest.TestCase):
    def test_it_has_each_number_and_those_of_each_gpu(self):
        script = """
import sys, types
sys.modules["pyfuse3"] = types.SimpleNamespace(Operations=object)  # the library mounts nothing here
sys.modules["trio"] = types.SimpleNamespace()
from gpuctl.model import Slice, SliceOnGpu
from gpuctl.mount import stat_of
on = SliceOnGpu(1, reserve=2, same=True, granted=3, memory=4, memory_peak=5, max_refusals=0)
print(stat_of(Slice("a", clients=7, energy_joules=1.5, on_gpus=[on])))
"""
        ran = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
        )
        lines = ran.stdout.splitlines()
        self.assertLessEqual({"clients 7", "energy_joules 1.5"}, set(lines), ran.stderr)
        self.assertEqual(
            [line for line in lines if line.startswith("gpu")],
            ["gpu1.granted 3", "gpu1.memory 4", "gpu1.memory_peak 5", "gpu1.max_refusals 0"],
        )


class WhereItIsNotInstalled(instance.SystemTest):
    def test_the_verb_says_where_it_is(self):
        self.env["PATH"] = str(self.scratch)
        ran = self.gpuctl("mount", self.scratch, check=False)
        said = "gpuctl-mount is not installed; it is in the Python package gpuctl (Debian: python3-gpuctl)"
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (1, "", f"gpuctl: mount: {said}\n"))

    def test_else_gpuctl_becomes_it(self):
        tool = self.scratch / "gpuctl-mount"
        tool.write_text('#!/bin/sh\necho "$@"\nexit 7\n')
        tool.chmod(0o755)
        self.env["PATH"] = f"{self.scratch}:/usr/bin:/bin"
        ran = self.gpuctl("--socket", "s", "mount", "/run/gpu", check=False)
        self.assertEqual((ran.returncode, ran.stdout), (7, "--socket s -- /run/gpu\n"))


@unittest.skipIf(PYTHON is None, "no Python with pyfuse3 (Debian: python3-pyfuse3)")
@unittest.skipIf(not os.access("/dev/fuse", os.R_OK | os.W_OK), "/dev/fuse cannot be opened")
class Mount(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.start_daemon(config="")
        self.gpuctl("create-slice", "batch", "--max", 4, "--memory-max", "1G")
        self.top = self.scratch / "slices"
        self.top.mkdir()
        self.mount = subprocess.Popen(
            [PYTHON, str(ROOT / "packaging/gpuctl-mount"), str(self.top)],
            env={**self.env, "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(self.mount.stderr.close)
        self.addCleanup(self.end_mount)
        instance.wait_until(lambda: self.top.is_mount() or self.mount.poll() is not None, "the directory to be mounted")
        if self.mount.poll() is not None:
            said = self.mount.stderr.read()
            if "Operation not permitted" in said:
                self.skipTest("this system lets nobody mount")
            self.fail(said)

    def end_mount(self):
        if self.mount.poll() is None:
            self.mount.send_signal(signal.SIGTERM)
        self.assertEqual(self.mount.wait(), 0)
        self.assertFalse(self.top.is_mount())

    def test_the_commands_of_the_manual(self):
        self.gpuctl("delete-slice", "batch")
        tools, there = self.scratch / "tools", self.scratch / "gpu"
        for directory in (tools, there):
            directory.mkdir()
        program = f"exec {PYTHON} {ROOT}/packaging/gpuctl-mount"
        (tools / "gpuctl-mount").write_text(f'#!/bin/sh\n{program} "$@"\n')
        (tools / "gpuctl-mount").chmod(0o755)
        mount, *others = [command.replace("/run/gpu", str(there)) for _, command in pages.run_by("mount")]
        until = f"until mountpoint -q {there}; do sleep 0.1; done"
        script = ["set -e", "trap 'kill %1; wait' EXIT", mount, until, *others]
        done = subprocess.run(
            ["bash", "-c", "\n".join(script)],
            env={
                **self.env,
                "PATH": f"{tools}:{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT / "python"),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=instance.PATIENCE_S,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("clients 0\n", done.stdout)
        self.assertEqual(self.gpuctl_json("show", "batch")["slice"]["max"], 40)

    def assertFails(self, code, action):
        with self.assertRaises(OSError) as raised:
            action()
        self.assertEqual(raised.exception.strerror, os.strerror(code))

    def test_settings_are_read_and_written(self):
        batch = self.top / "batch"
        self.assertEqual({path.name for path in batch.iterdir()}, {f"gpu.{key}" for key in (*gpuctl.SETTINGS, *OTHERS)})
        self.assertEqual((batch / "gpu.max").read_text(), "4\n")
        for key, text in (("max", "3"), ("weight", "50"), ("latency", "5ms"), ("memory_max", "2G"), ("priority", "-7")):
            (batch / f"gpu.{key}").write_text(text + "\n")
        now = self.gpuctl_json("show", "batch")["slice"]
        said = [now[key] for key in ("max", "weight", "latency", "memory_max", "priority")]
        self.assertEqual(said, [3, 50, "5ms", 2 << 30, -7])
        (batch / "gpu.max").write_text("50%,0:3\n")
        self.assertEqual((batch / "gpu.max").read_text(), "50%,0:3\n")
        (batch / "gpu.max").write_text("unlimited")
        self.assertEqual((batch / "gpu.max").read_text(), "unlimited\n")
        (batch / "gpu.devices").write_text("0\n")
        self.assertEqual((batch / "gpu.devices").read_text(), "0\n")
        self.assertIn("clients 0\n", (batch / "gpu.stat").read_text())
        counts = "memory_waits 0\nmemory_refusals 0\nthrottled 0\nfaults 0\nended 0\n"
        self.assertEqual((batch / "gpu.events").read_text(), counts)

    def test_slices_are_made_and_deleted(self):
        (self.top / "batch/below").mkdir()
        self.assertTrue((self.top / "batch/below/gpu.max").exists())
        self.assertFails(errno.EBUSY, (self.top / "batch").rmdir)
        (self.top / "batch/below").rmdir()
        (self.top / "batch").rmdir()
        self.assertEqual([one["path"] for one in self.gpuctl_json("list")["slices"]], ["/"])

    def test_a_program_is_moved_by_its_pid(self):
        self.gpuctl("create-slice", "ls")
        program = self.start_idle_in("batch")
        self.assertEqual((self.top / "batch/gpu.procs").read_text(), f"{program.pid}\n")
        (self.top / "ls/gpu.procs").write_text(str(program.pid))
        self.assertEqual([client["pid"] for client in self.clients("ls")], [program.pid])

    def test_what_is_refused_changes_nothing(self):
        batch, free = self.top / "batch", self.top / "free"
        free.mkdir()
        for code, action in (
            (errno.ENOSPC, lambda: (free / "gpu.reserve").write_text("99")),
            (errno.EINVAL, lambda: (batch / "gpu.reserve").write_text("99")),
            (errno.EINVAL, lambda: (batch / "gpu.weight").write_text("heavy")),
            (errno.EINVAL, lambda: (batch / "gpu.procs").write_text("all")),
            (errno.ESRCH, lambda: (batch / "gpu.procs").write_text("1")),
            (errno.ENOENT, lambda: (self.top / "no/gpu.max").read_text()),
            (errno.ENOENT, lambda: (self.top / "no name").stat()),
            (errno.EEXIST, lambda: (self.top / "gpu.max").mkdir()),
            (errno.EACCES, lambda: (batch / "gpu.stat").write_text("1")),
        ):
            self.assertFails(code, action)
        self.assertEqual((batch / "gpu.weight").read_text(), "100\n")

    def test_nothing_is_no_value(self):
        batch = self.top / "batch"
        for key in amounts.AMOUNTS:
            file = batch / f"gpu.{key}"
            file.write_text("1\n")
            for nothing in ("\n", " \n", ",\n", "1,\n"):
                with self.subTest(key=key, nothing=nothing):
                    self.assertFails(errno.EINVAL, lambda file=file, nothing=nothing: file.write_text(nothing))
                    self.assertEqual(file.read_text(), "1\n")

    def test_users_and_groups_have_names(self):
        me = pwd.getpwuid(os.getuid())
        batch = self.top / "batch"
        (batch / "gpu.owner_uid").write_text(me.pw_name + "\n")
        (batch / "gpu.join").write_text(f"user:{me.pw_name},unit:a.service\n")
        now = self.gpuctl_json("show", "batch")["slice"]
        self.assertEqual((now["owner_uid"], now["join"]), (me.pw_uid, f"user:{me.pw_uid},unit:a.service"))
        for key in ("owner_uid", "owner_gid", "join"):
            before = (batch / f"gpu.{key}").read_text()
            self.assertFails(errno.EINVAL, lambda key=key: (batch / f"gpu.{key}").write_text("user:no such name\n"))
            self.assertEqual((batch / f"gpu.{key}").read_text(), before)

    def test_events_can_be_waited_for(self):
        has_poll = "import pyfuse3, sys; sys.exit(not hasattr(pyfuse3, 'PollHandle'))"
        if subprocess.run([PYTHON, "-c", has_poll]).returncode != 0:
            self.skipTest("this pyfuse3 hands no poll on; 3.5 does")
        program = self.start_idle_in("batch")
        waits = select.poll()
        with (self.top / "batch/gpu.events").open("rb", buffering=0) as file:
            self.assertIn(b"ended 0\n", file.read())
            waits.register(file, select.POLLPRI)
            self.assertEqual(waits.poll(100), [])
            program.kill()
            self.assertEqual(waits.poll(10_000), [(file.fileno(), select.POLLPRI | select.POLLERR)])
            self.assertEqual(waits.poll(100), [(file.fileno(), select.POLLPRI | select.POLLERR)], "not read yet")
            file.seek(0)
            self.assertIn(b"ended 1\n", file.read())
            self.assertEqual(waits.poll(100), [])
        with (self.top / "batch/gpu.max").open("rb", buffering=0) as file:
            waits = select.poll()
            waits.register(file, select.POLLIN)
            self.assertEqual(waits.poll(100), [(file.fileno(), select.POLLIN)], "it is always ready")

    def test_it_outlives_the_daemon(self):
        self.daemon.kill()
        self.assertFails(errno.EHOSTDOWN, (self.top / "batch/gpu.max").read_text)
        self.start_daemon(config="")
        self.assertEqual((self.top / "batch/gpu.max").read_text(), "4\n")


if __name__ == "__main__":
    instance.main()
