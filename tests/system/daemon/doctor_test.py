"""gpuctl doctor: what it says of this machine and of programs, and how it exits."""

import ctypes
import pathlib
import subprocess
import sys
import unittest

from tests.system.harness import instance


class Doctor(instance.SystemTest):
    def findings(self, *arguments):
        done = self.gpuctl("doctor", *arguments, "--json", check=False)
        said = instance.json.loads(done.stdout)["findings"]
        worst = max(("ok", "note", "warning", "error").index(one["severity"]) for one in said)
        self.assertEqual(done.returncode, (0, 0, 1, 2)[worst])
        return {(one["severity"], one["topic"]): one for one in said}

    def test_a_machine_with_a_software_gpu(self):
        self.start_daemon()
        found = self.findings()
        self.assertIn("answers at", found["ok", "daemon"]["what"])
        self.assertIn("loads", found["ok", "library"]["what"])
        self.assertIn("software GPU", found["note", "driver"]["what"])
        self.assertNotIn(("ok", "isolation"), found)
        self.gpuctl("create-slice", "apart", "--isolation", "isolated")
        self.gpuctl("create-slice", "apart/below")
        self.assertIn("isolated now: apart, apart/below; ", self.findings()["ok", "isolation"]["what"])
        self.assertFalse([one for one in found if one[0] in ("warning", "error")], found)
        text = self.gpuctl("doctor").stdout
        self.assertRegex(text, r"(?m)^ok       daemon: gpuctld \S+ answers at ")

    def test_no_daemon_is_said_loudly(self):
        error = self.findings()["error", "daemon"]
        self.assertIn("WITHOUT LIMITS", error["what"])
        self.assertTrue(error["fix"])

    def test_a_library_that_cannot_be_loaded(self):
        self.start_daemon()
        broken = self.scratch / "libgpuslice.so"
        broken.write_bytes(b"no library")
        self.env["GPUCTL_LIBGPUSLICE"] = str(broken)
        self.assertIn("WITHOUT LIMITS", self.findings()["error", "library"]["what"])

    @unittest.skipUnless(pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists(), "no cgroups of version 2 here")
    def test_of_which_version_the_cgroups_are(self):
        self.start_daemon()
        self.assertIn("version 2", self.findings()["ok", "cgroups"]["what"])

    def test_programs(self):
        self.start_daemon()
        self.gpuctl("create-slice", "batch", "--max", 4)
        inside = self.start_bench("batch", "work", "--blocks", 8, "--seconds", 600, "--announce")
        inside.wait_started()  # gpuctl run is in the slice for a moment before
        self.assertIn("in slice batch", self.gpuctl("doctor", inside.pid).stdout)
        outside = self.start(
            instance.BENCH,
            "run",
            "work",
            "--blocks",
            8,
            "--seconds",
            600,
            "--announce",
            env={**self.env, "LD_LIBRARY_PATH": str(instance.SOFTGPU)},
        )
        outside.wait_started()
        self.assertIn("NOTHING LIMITS IT", self.findings(outside.pid)["error", "program"]["what"])
        other = subprocess.Popen(["sleep", "600"])
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        self.assertIn("does not use CUDA", self.findings(other.pid)["note", "program"]["what"])
        self.assertEqual(self.gpuctl("doctor", "no-number", check=False).returncode, 2)

    def test_a_program_that_may_not_be_looked_at(self):
        """As one of another user, to who is not root."""
        self.start_daemon()
        prctl = ctypes.CDLL(None).prctl

        def be_nobody_special():
            for capability in range(64):
                prctl(24, capability)  # PR_CAPBSET_DROP: from exec on

        hide = "import ctypes, sys; ctypes.CDLL(None).prctl(4, 0); print('hidden', flush=True); sys.stdin.read()"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen([sys.executable, "-c", hide], **pipes) as program:  # 4: PR_SET_DUMPABLE
            self.assertEqual(program.stdout.readline(), "hidden\n")
            done = subprocess.run(
                [instance.GPUCTL, "doctor", str(program.pid)],
                env=self.env,
                preexec_fn=be_nobody_special,
                capture_output=True,
                text=True,
            )
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(
            done.stdout, rf"warning  program: process {program.pid} may not be looked at.* Do: ask as root\n"
        )


if __name__ == "__main__":
    instance.main()
