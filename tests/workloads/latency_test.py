"""gpuctl simulate keeps SMs for an application with a target: latency_test.py GPUCTL."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

WORKLOAD = pathlib.Path(__file__).parent / "latency.toml"
GPUCTL = sys.argv.pop(1)


class Latency(unittest.TestCase):
    def simulate(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            command = [GPUCTL, "--json", "simulate", file.name, "--policy", "share"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        (answer,) = json.loads(done.stdout)
        return {one["name"]: one for one in answer["applications"]}

    def test_the_server_meets_its_target_and_batch_goes_on(self):
        text = WORKLOAD.read_text()
        target = 'latency = "3ms"\n'
        self.assertIn(target, text)
        met, missed = self.simulate(text), self.simulate(text.replace(target, ""))
        self.assertGreater(missed["server"]["p99_ms"], 6)
        self.assertLess(met["server"]["p99_ms"], missed["server"]["p99_ms"])
        self.assertGreaterEqual(met["batch"]["launches"], 0.7 * missed["batch"]["launches"])


if __name__ == "__main__":
    unittest.main()
