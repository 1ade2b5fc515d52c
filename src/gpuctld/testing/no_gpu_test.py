"""gpuctld where there is no GPU that it can use: it says so, offers nothing in its place, and goes on looking.

no_gpu_test.py GPUCTLD FAKE_DRIVER
"""

import os
import sys
import unittest

from daemon_instance import UUID, DaemonTestCase, Program, Varlink, eventually


class NoGpu(DaemonTestCase):
    def status(self):
        return self.call("GetStatus")["parameters"]

    def devices(self):
        return [device["sms"] for device in self.status()["devices"]]

    def end(self):
        self.daemon.terminate()
        _, errors = self.daemon.communicate(timeout=60)
        self.assertEqual(self.daemon.returncode, 0)
        self.assertFalse(os.path.exists(self.path))
        self.daemon = None
        return errors.splitlines()

    def test_a_driver_that_fails_is_tried_again_and_nothing_takes_its_place(self):
        self.start()
        self.call("CreateSlice", path="kept", settings={"max": 9})
        self.kill()
        there = os.path.join(self.directory, "there")
        self.environment["FAKE_DRIVER"] = "until:" + there
        self.start()
        why = "libcuda.so.1: the CUDA driver answers with error 999"
        self.assertEqual((self.status()["devices"], self.status()["notes"]), ([], ["no GPU is managed: " + why]))
        for method, parameters in (
            ("ListSlices", {}),
            ("DeleteSlice", {"path": "kept"}),
            ("Attach", {"slice": "kept", "device_uuids": [UUID], "resumed": False}),
        ):
            reply = self.call(method, **parameters)
            self.assertEqual((reply.get("error"), reply["parameters"]), ("io.gpuctl.NoGpu", {"reason": why}))
        before = Varlink(self.path)
        self.assertEqual(before.call("GetStatus")["parameters"]["devices"], [])
        self.write("there", "")
        self.assertTrue(eventually(lambda: self.devices() == [132, 131, 130], seconds=60))
        self.assertEqual(len(before.call("GetStatus")["parameters"]["devices"]), 3, "the connection has not ended")
        before.close()
        self.assertEqual([node["path"] for node in self.call("ListSlices")["parameters"]["slices"]], ["/", "kept"])
        program = Program(self.path, "kept")
        program.demand(132)
        self.assertTrue(eventually(lambda: program.granted() == 9, seconds=60))
        program.close()
        lines = self.end()
        self.assertEqual(len([line for line in lines if "no GPU is managed" in line]), 1, lines)
        self.assertTrue(lines[0].startswith(f"gpuctld: no GPU is managed: {why}; "), lines)

    def test_a_driver_that_is_not_there_yet(self):
        os.remove(os.path.join(self.directory, "libcuda.so.1"))
        self.environment["LD_LIBRARY_PATH"] = self.directory
        self.write("libcuda.so.1", "no library")
        self.start()
        self.assertEqual(self.devices(), [])
        os.remove(os.path.join(self.directory, "libcuda.so.1"))
        os.symlink(self.FAKE_DRIVER, os.path.join(self.directory, "libcuda.so.1"))
        self.assertTrue(eventually(lambda: self.devices() == [132, 131, 130], seconds=60))
        self.end()

    def test_a_driver_without_a_device(self):
        self.environment["FAKE_DRIVER"] = "none"
        self.start()
        self.assertEqual(self.status()["notes"], ["no GPU is managed: the driver reports no device"])
        self.assertEqual(len(self.end()), 1)

    def test_a_driver_that_hangs_does_not_hang_the_end(self):
        self.environment["FAKE_DRIVER"] = "hang"
        self.daemon = self.spawn("--socket", self.path)
        self.assertTrue(eventually(lambda: os.path.exists(self.path), seconds=60))
        self.assertTrue(eventually(lambda: os.path.exists(self.path + ".state/lock"), seconds=60))
        self.daemon.terminate()
        self.daemon.communicate(timeout=60)
        self.daemon = None

    def test_wrong_configuration_found_when_the_gpu_comes_ends_the_daemon(self):
        there = os.path.join(self.directory, "there")
        self.environment["FAKE_DRIVER"] = "until:" + there
        self.start("--config", self.write("c.toml", "[[device]]\nindex = 9\n"))
        self.write("there", "")
        _, errors = self.daemon.communicate(timeout=60)
        self.assertEqual(self.daemon.returncode, 1)
        self.daemon = None
        self.assertIn("no such GPU in this machine", errors.splitlines()[-1])


if __name__ == "__main__":
    DaemonTestCase.GPUCTLD, DaemonTestCase.FAKE_DRIVER = (os.path.abspath(argument) for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1], verbosity=2)
