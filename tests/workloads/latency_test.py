"""gpuctl simulate keeps SMs for an application with a target, and has turns for one that is isolated:
latency_test.py GPUCTL."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
GPUCTL = sys.argv.pop(1)


class Latency(unittest.TestCase):
    def simulate(self, text, policy="share"):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            command = [GPUCTL, "--json", "simulate", file.name, "--policy", policy]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        (answer,) = json.loads(done.stdout)
        return {one["name"]: one for one in answer["applications"]}

    def test_the_server_meets_its_target_and_batch_goes_on(self):
        text = (HERE / "latency.toml").read_text()
        target = 'latency = "3ms"\n'
        self.assertIn(target, text)
        met, missed = self.simulate(text), self.simulate(text.replace(target, ""))
        self.assertGreater(missed["server"]["p99_ms"], 6)
        self.assertLess(met["server"]["p99_ms"], missed["server"]["p99_ms"])
        self.assertGreaterEqual(met["batch"]["launches"], 0.7 * missed["batch"]["launches"])

    def test_an_isolated_model_waits_for_no_product_and_products_go_on(self):
        text = (HERE / "isolated.toml").read_text()
        isolated = "isolated = true\n"
        self.assertIn(isolated, text)
        apart, beside = self.simulate(text, "fcfs"), self.simulate(text.replace(isolated, ""), "fcfs")
        alone_ms, turn_ms, switch_ms = 0.93, 0.1, 0.16
        self.assertGreater(beside["resnet"]["p50_ms"], 5)
        self.assertGreater(apart["resnet"]["p50_ms"], alone_ms + switch_ms)
        self.assertLess(apart["resnet"]["p50_ms"], alone_ms + switch_ms + turn_ms)
        # Of the GPU's time the model has what it needs, each of its launches two switches, and the products the rest.
        lost = 100 * (alone_ms + 2 * switch_ms) / 1000
        self.assertAlmostEqual(apart["products"]["share"], 1 - lost, delta=0.02)


if __name__ == "__main__":
    unittest.main()
