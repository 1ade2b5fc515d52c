#!/usr/bin/env python3
"""policy=sim: two kernels run at once, divided by what is learnt of them meanwhile, and that is kept over a restart."""
import sys
import time

import instance


class SideBySide(instance.SystemTest):
    def start_kernel(self, kind):
        program = self.start_in("/", instance.DRIVER_PROGRAMS / "scaling", kind)
        program.wait_started()
        return program

    def mean_grants(self, *programs, samples=100):
        """Mean SMs of each, over instants at which all of them are running."""
        sums = [0] * len(programs)

        def all_running():
            clients = {c["pid"]: c for c in self.clients("/") if c["usage"] and c["state"] == "running"}
            return all(p.pid in clients for p in programs) and [clients[p.pid]["usage"][0]["granted"] for p in programs]

        for _ in range(samples):
            granted = instance.wait_until(all_running, "all to run at once")
            sums = [total + sms for total, sms in zip(sums, granted)]
            time.sleep(0.02)
        return [total / samples for total in sums]

    def curve(self, kernel):
        """Pairs of SMs and microseconds per block-task."""
        for known in self.call("ListKernels")["kernels"]:
            if known["name"] == kernel:
                return [(point["sms"], point["block_task_us"]) for point in known["curve"]]
        return []

    def assertAllRight(self, program):
        program.process.terminate()
        self.assertEqual(program.wait(), 0, program.err() + program.out())
        self.assertRegex(program.out(), r"scaling: [1-9]\d* results, 0 wrong")

    def test_side_by_side_by_curves_that_are_kept(self):
        daemon = self.start_daemon()
        self.gpuctl("set", "/", "policy=sim")
        paced = self.start_kernel("paced")
        instance.wait_until(lambda: self.curve("paced"), "a launch that has the GPU alone")
        self.assertEqual(self.curve("paced")[0][0], instance.SMS)
        scales = self.start_kernel("scales")
        instance.wait_until(lambda: len(self.curve("scales")) > 1 and self.curve("paced")[0][0] < instance.SMS,
                            "both to be known with several numbers of SMs")
        means = self.mean_grants(paced, scales)
        print(f"SMs of paced and scales: {means}; {self.curve('paced')}, {self.curve('scales')}", file=sys.stderr)
        self.assertLess(means[0], instance.SMS / 2 - 1)
        self.assertGreater(means[1], instance.SMS / 2)
        self.assertAllRight(paced)
        self.assertAllRight(scales)

        instance.wait_until(lambda: not self.clients("/"), "both to be gone")
        before = self.curve("paced"), self.curve("scales")
        self.assertRegex(self.gpuctl("show", "--kernels").stdout, r"paced .*\d+: [\d.]+ ms")
        daemon.process.terminate()
        self.assertEqual(daemon.wait(), 0)
        self.start_daemon()
        self.assertEqual((self.curve("paced"), self.curve("scales")), before)


if __name__ == "__main__":
    instance.main()
