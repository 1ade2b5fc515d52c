"""Programs that name no slice are in that whose setting `join` names them, or their user, group or unit."""

import os
import pathlib
import subprocess
import sys
import unittest

from tests.system.harness import instance

# Where a process can be put into a unit: systemd's own tree of version 1, or that of version 2.
TREES = [pathlib.Path("/sys/fs/cgroup/systemd"), pathlib.Path("/sys/fs/cgroup")]
TREE = next((tree for tree in TREES if (tree / "cgroup.procs").exists() and os.access(tree, os.W_OK)), None)
ALICE, ML = 64001, 64002  # nobody else's
# Of CUDA.
NOT_INITIALIZED, NOT_PERMITTED = 3, 800
STARTS_ALONE = (
    "import ctypes; driver = ctypes.CDLL('libcuda.so.1')\n"
    "print(driver.cuInit(0), flush=True); input(); print(driver.cuInit(0))"
)
GOES_ON = (
    "import ctypes; driver = ctypes.CDLL('libcuda.so.1'); count = ctypes.c_int()\n"
    "print(driver.cuInit(0), driver.cuInit(0), driver.cuDeviceGetCount(ctypes.byref(count)))"
)
PROGRAM = ("work", "--iterations", 30, "--blocks", 64, "--count", 1_000_000, "--announce")


def remove(directory):
    try:
        directory.rmdir()
    except OSError:
        return False
    return True


class Join(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.start_daemon()

    def slices_with_programs(self):
        return {one["path"]: one["clients"] for one in self.call("ListSlices")["slices"] if one["clients"]}

    def nowhere(self):
        """The environment of a program that has the library and names no slice."""
        env = {
            **self.env,
            "GPUCTL_SOCKET": str(self.socket),
            "LD_LIBRARY_PATH": str(instance.SOFTGPU),
            "LD_PRELOAD": str(instance.BUILD / "src/libgpuslice/libgpuslice.so.0"),
        }
        env.pop("GPUCTL_SLICE", None)
        return env

    def start_nowhere(self, *before):
        program = self.start(*before, instance.BENCH, "run", *PROGRAM, "--json", env=self.nowhere())
        program.wait_started()
        return program

    def test_by_user_and_by_group(self):
        self.gpuctl("create-slice", "mine", "--join", f"user:{os.geteuid()}")
        self.gpuctl("create-slice", "theirs", "--join", f"user:{ALICE},group:{ML}")
        program = self.start_nowhere()
        self.assertEqual(self.slices_with_programs(), {"mine": 1})
        program.stop()

    def test_without_a_rule_it_is_in_the_root(self):
        self.gpuctl("create-slice", "theirs", "--join", f"user:{ALICE}")
        program = self.start_nowhere()
        self.assertEqual(self.slices_with_programs(), {"/": 1})
        program.stop()

    def test_run_without_a_slice(self):
        refused = self.gpuctl("run", "--", "true", check=False)
        self.assertEqual(
            (refused.returncode, refused.stderr),
            (125, "gpuctl: run: --slice is missing, and no slice has a setting join for you; give one: --slice NAME\n"),
        )
        self.gpuctl("create-slice", "mine", "--join", f"user:{os.geteuid()}")
        said = self.gpuctl("run", "--", "sh", "-c", "echo $GPUCTL_SLICE").stdout
        self.assertEqual(said, "mine\n")

    def test_show_names_users(self):
        self.gpuctl("create-slice", "mine", "--join", "user:root,unit:x.service")
        self.assertIn("joined by     user:root,unit:x.service\n", self.gpuctl("show", "mine").stdout)
        refused = self.gpuctl("create-slice", "b", "--join", "unit:x.service", check=False)
        self.assertEqual(refused.stderr, "gpuctl: join: unit x.service joins mine already\n")
        refused = self.gpuctl("create-slice", "b", "--join", "user:no-such-user", check=False)
        self.assertIn("there is no user 'no-such-user'", refused.stderr)

    def test_by_the_program_itself(self):
        self.gpuctl("create-slice", "mine", "--join", f"user:{os.geteuid()}")
        self.gpuctl("create-slice", "bench", "--join", f"exe:{instance.BENCH.resolve()}")
        self.assertIn(f"joined by     exe:{instance.BENCH.resolve()}\n", self.gpuctl("show", "bench").stdout)
        program = self.start_nowhere("sh", "-c", 'exec "$@"', "sh")
        self.assertEqual(self.slices_with_programs(), {"bench": 1})
        program.stop()

    def test_what_started_the_program_does_not_count(self):
        self.gpuctl("create-slice", "mine", "--join", f"user:{os.geteuid()}")
        self.gpuctl("create-slice", "shell", "--join", f"exe:{os.path.realpath('/bin/sh')}")
        program = self.start_nowhere("sh", "-c", 'exec "$@"', "sh")
        self.assertEqual(self.slices_with_programs(), {"mine": 1})
        program.stop()

    def test_gpuctl_run_says_what_it_will_run(self):
        self.gpuctl("create-slice", "shell", "--join", f"exe:{os.path.realpath('/bin/sh')}")
        self.assertEqual(self.gpuctl("run", "--", "sh", "-c", "echo $GPUCTL_SLICE").stdout, "shell\n")

    def test_a_program_comes_back_to_the_slice_that_took_it_in(self):
        self.gpuctl("create-slice", "bench", "--join", f"exe:{instance.BENCH.resolve()}")
        program = self.start_nowhere()
        self.daemon.process.terminate()
        self.daemon.wait()
        self.start_daemon()
        instance.wait_until(lambda: self.slices_with_programs() == {"bench": 1}, "the program's return")
        program.stop()

    def test_a_program_is_named_by_its_full_path(self):
        refused = self.gpuctl("create-slice", "b", "--join", "exe:bench", check=False)
        self.assertEqual(
            (refused.returncode, refused.stderr.splitlines()[0]),
            (
                2,
                "gpuctl: --join: exe 'bench' is no full path of a program, in at most 255 characters of ASCII, such as "
                "exe:/usr/bin/ollama",
            ),
        )

    def make_unit(self):
        unit = TREE / "gpuctl-test.slice" / f"gpuctl-test-{os.getpid()}.service"
        unit.mkdir(parents=True)
        self.addCleanup(unit.parent.rmdir)
        self.addCleanup(instance.wait_until, lambda: remove(unit), "the unit to be empty")
        return unit

    def start_in(self, unit):
        return self.start_nowhere("sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', unit)

    @unittest.skipIf(TREE is None, "no tree of cgroups can be written here")
    def test_by_unit(self):
        unit = self.make_unit()
        self.gpuctl("create-slice", "above", "--join", "unit:gpuctl-test.slice")
        self.gpuctl("create-slice", "unit", "--join", f"unit:{unit.name}")
        self.gpuctl("create-slice", "mine", "--join", f"user:{os.geteuid()}")
        inside = self.start_in(unit)
        self.assertEqual(self.slices_with_programs(), {"unit": 1})
        outside = self.start_nowhere()
        self.assertEqual(self.slices_with_programs(), {"unit": 1, "mine": 1})
        for program in (inside, outside):
            program.stop()

    @unittest.skipIf(TREE is None, "no tree of cgroups can be written here")
    def test_by_cgroup(self):
        unit = self.make_unit()
        self.gpuctl("create-slice", "ml", "--join", "cgroup:/gpuctl-test.slice")
        self.gpuctl("create-slice", "mine", "--join", f"user:{os.geteuid()}")
        inside, outside = self.start_in(unit), self.start_nowhere()
        self.assertEqual(self.slices_with_programs(), {"ml": 1, "mine": 1})
        for program in (inside, outside):
            program.stop()

    def test_a_slice_for_all_others(self):
        self.daemon.process.terminate()
        self.daemon.wait()
        self.start_daemon(config='[daemon]\ndefault_slice = "others"\n[slice.others]\n')
        program = self.start_nowhere()
        self.assertEqual(self.slices_with_programs(), {"others": 1})
        self.assertEqual(self.gpuctl("run", "--", "sh", "-c", "echo $GPUCTL_SLICE").stdout, "others\n")
        program.stop()

    def test_what_is_in_no_slice_is_refused_where_there_is_no_default(self):
        self.daemon.process.terminate()
        self.daemon.wait()
        self.start_daemon(config='[daemon]\ndefault_slice = "none"\n')
        command = [str(part) for part in (instance.BENCH, "run", *PROGRAM)]
        refused = subprocess.run(command, env=self.nowhere(), capture_output=True, text=True, timeout=60, check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("CUDA_ERROR_NOT_PERMITTED", refused.stderr)
        events = [one for one in self.call("Events")["events"] if one["kind"] == "refused"]
        self.assertEqual([one["text"] for one in events], ["GetMpsPercentage: NoSlice"])
        goes_on = [sys.executable, "-c", GOES_ON]
        said = subprocess.run(goes_on, env=self.nowhere(), capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(said.stdout, f"{NOT_PERMITTED} {NOT_PERMITTED} {NOT_INITIALIZED}\n", said.stderr)
        said = self.gpuctl("run", "--", "true", check=False)
        self.assertEqual(
            (said.returncode, said.stderr),
            (125, "gpuctl: no slice is named, and no slice has a setting join for you; give one: --slice NAME\n"),
        )
        self.gpuctl("create-slice", "mine", "--join", f"user:{os.geteuid()}")
        program = self.start_nowhere()
        self.assertEqual(self.slices_with_programs(), {"mine": 1})
        program.stop()

    def test_what_runs_already_is_not_refused_when_a_daemon_comes(self):
        self.daemon.process.terminate()
        self.daemon.wait()
        program = subprocess.Popen(
            [sys.executable, "-c", STARTS_ALONE],
            env=self.nowhere(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(program.communicate)
        self.assertEqual(program.stdout.readline(), "0\n")
        self.start_daemon(config='[daemon]\ndefault_slice = "none"\n')

        def refused():
            return any(one["kind"] == "refused" for one in self.call("Events")["events"])

        instance.wait_until(refused, "its try to attach")
        self.assertEqual(program.communicate("\n")[0], "0\n")

    @unittest.skipIf(TREE is None, "no tree of cgroups can be written here")
    def test_doctor_says_whether_the_driver_limits_the_unit_too(self):
        unit = self.make_unit()
        self.gpuctl("create-slice", "unit", "--join", f"unit:{unit.name}", "--memory-max", "512M")
        inside = self.start_in(unit)

        def memory():
            done = self.gpuctl("doctor", inside.pid, "--json", check=False)
            (said,) = [one for one in instance.json.loads(done.stdout)["findings"] if one["topic"] == "memory"]
            return said["severity"], said["what"]

        of_slice, path = "on GPU 0: at most 512 MiB for its slice, kept by the library", f"/{unit.relative_to(TREE)}"
        self.assertEqual(memory(), ("ok", f"{of_slice} alone"))
        self.env["LD_LIBRARY_PATH"] = str(instance.BUILD / "src/gpuctl")  # what stands in for NVML there
        for size, severity, more in (
            (640, "ok", ""),
            (64, "warning", ", which refuses memory that the slice allows"),
        ):
            self.env["FAKE_NVML_LIMITS"] = f"GPU-1 /sys/fs/cgroup{path} {size << 20}"
            by_both = f"{of_slice}; at most {size} MiB for {path}, kept by the driver{more}"
            self.assertEqual(memory(), (severity, by_both))
        inside.stop()


if __name__ == "__main__":
    instance.main()
