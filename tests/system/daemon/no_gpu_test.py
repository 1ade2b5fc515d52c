"""gpuctld where the only driver is the software GPU's, which nobody asked for: it manages nothing, says why, and no
program runs under it."""

import json

from tests.system.harness import instance


class NoGpu(instance.SystemTest):
    def start_without_gpu(self):
        env = {**self.env, "LD_LIBRARY_PATH": str(instance.SOFTGPU)}
        command = [instance.GPUCTLD, "--socket", self.socket, "--state", self.state]
        self.daemon = instance.Program(command, env, self.scratch, len(self.programs))
        self.programs.append(self.daemon)
        instance.wait_until(lambda: self.gpuctl("status", check=False).returncode == 0, "gpuctld to answer")

    def test_the_software_gpu_is_not_offered_unasked(self):
        self.start_without_gpu()
        why = "the driver is the software GPU's, which is used with --software-gpu alone"
        status = json.loads(self.gpuctl("status", "--json").stdout)
        self.assertEqual((status["devices"], status["notes"]), ([], ["no GPU is managed: " + why]))
        self.assertIn(f"note: no GPU is managed: {why}\n", self.gpuctl("status").stdout)
        self.assertEqual(self.daemon.err().count("\n"), 1)
        ran = self.scratch / "ran"
        for arguments in (("run", "--slice", "/", "touch", ran), ("list",), ("create-slice", "a")):
            done = self.gpuctl(*arguments, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stderr, f"gpuctl: gpuctld has no GPU to manage: {why}\n")
        self.assertFalse(ran.exists())

    def test_it_is_managed_on_request(self):
        self.start_daemon()
        (device,) = json.loads(self.gpuctl("status", "--json").stdout)["devices"]
        self.assertEqual(device["kind"], "software")
        self.daemon.kill()
        self.daemon = None
        self.start_with_configuration()

    def start_with_configuration(self):
        """software_gpu in the configuration asks for it too."""
        path = self.scratch / "software.toml"
        path.write_text("[daemon]\nsoftware_gpu = true\n")
        command = [instance.GPUCTLD, "--socket", self.socket, "--state", self.state, "--config", path]
        self.daemon = instance.Program(command, self.env, self.scratch, len(self.programs))
        self.programs.append(self.daemon)
        instance.wait_until(lambda: self.gpuctl("status", check=False).returncode == 0, "gpuctld to answer")
        (device,) = json.loads(self.gpuctl("status", "--json").stdout)["devices"]
        self.assertEqual(device["kind"], "software")


if __name__ == "__main__":
    instance.main()
