"""policy=sim: two kernels run at once, divided by what is learnt of them meanwhile, and that is kept over a restart."""

import json
import sys
import time

from tests.system.harness import instance

# What makes the first program the one that has been at it longer, however quickly programs start.
HEAD_START_S = 0.5


class Harness(instance.SystemTest):
    def start_kernel(self, kind):
        program = self.start_in("/", instance.DRIVER_PROGRAMS / "scaling", kind)
        program.wait_started()
        return program

    def start_long(self, kind, blocks):
        """A launch of some seconds: as long as it runs nothing is learnt of its kernel."""
        program = self.start_in("/", instance.DRIVER_PROGRAMS / "scaling", kind, blocks)
        instance.wait_until(
            lambda: any(c["pid"] == program.pid and c["state"] == "running" for c in self.clients("/")), kind
        )
        return program

    def end_daemon(self):
        self.daemon.process.terminate()
        self.assertEqual(self.daemon.wait(), 0, self.daemon.err())

    def curves_file(self, keys, flat):
        """What the daemon keeps about kernels, as if one of them had been seen to make no use of more than two SMs, and
        the others to scale; nothing about how long they take."""
        names = [
            {"key": key, "name": name, "module": module, "launches": 0, "mean_ns": 0, "predicted_ns": 0}
            for name, (key, module) in keys.items()
        ]
        model = {"weight": 0, "mean": [0] * 5, "moment": [0] * 25, "least_ns": 0, "most_ns": 0}
        known = [
            {
                "name": key,
                "launches": 0,
                "error": 0,
                "last_ns": 0,
                "evictions": 0,
                "eviction_ns": 0,
                "model": model,
                "curve": [[2, 1e9 if name == flat else 4e9, 4, 1], [instance.SMS, 1e9, 4, 0]],
            }
            for name, (key, _) in keys.items()
        ]
        return json.dumps({"version": 1, "kernels": names, "predictor": {"version": 1, "kernels": known}})

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


class TimedCurves(Harness):
    def test_side_by_side_by_curves_that_are_kept(self):
        daemon = self.start_daemon()
        self.gpuctl("set", "/", "policy=sim")
        paced = self.start_kernel("paced")
        instance.wait_until(lambda: self.curve("paced"), "a launch that has the GPU alone")
        self.assertEqual(self.curve("paced")[0][0], instance.SMS)
        scales = self.start_kernel("scales")
        instance.wait_until(
            lambda: self.curve("scales") and self.curve("paced")[0][0] < instance.SMS, "both to be known with fewer"
        )
        means = []

        def divided():
            means.append(self.mean_grants(paced, scales, samples=50))
            return means[-1][0] < instance.SMS / 2 - 1 and means[-1][1] > instance.SMS / 2

        instance.wait_until(divided, "most SMs to go to the kernel that can use them")
        print(f"SMs of paced and scales: {means}; {self.curve('paced')}, {self.curve('scales')}", file=sys.stderr)
        self.assertAllRight(paced, "scaling")
        self.assertAllRight(scales, "scaling")

        instance.wait_until(lambda: not self.clients("/"), "both to be gone")
        before = self.curve("paced"), self.curve("scales")
        self.assertRegex(self.gpuctl("show", "--kernels").stdout, r"paced .*\d+: [\d.]+ ms")
        daemon.process.terminate()
        self.assertEqual(daemon.wait(), 0)
        self.start_daemon()
        self.assertEqual((self.curve("paced"), self.curve("scales")), before)


class SideBySide(Harness):
    def test_curves_decide(self):
        """The same two kernels with opposite curves, and without: the first to come, which has been at it longer, has
        most SMs unless its curve says that two are enough."""
        self.start_daemon()
        self.gpuctl("set", "/", "policy=sim")
        programs = [self.start_kernel(kind) for kind in ("paced", "scales")]
        instance.wait_until(
            lambda: {k["name"] for k in self.call("ListKernels")["kernels"]} == {"paced", "scales"}, "both to be known"
        )
        for program in programs:
            program.kill()
        self.end_daemon()
        file = self.state / "kernels.json"
        keys = {k["name"]: (k["key"], k["module"]) for k in json.loads(file.read_text())["kernels"]}
        blocks = {"paced": 6000, "scales": 12800}
        for first, second in (("paced", "scales"), ("scales", "paced")):
            for flat in (first, second, None):
                file.write_text(self.curves_file(keys if flat else {}, flat))
                self.start_daemon()
                programs = [self.start_long(first, blocks[first])]
                time.sleep(HEAD_START_S)
                programs.append(self.start_long(second, blocks[second]))
                means = self.mean_grants(*programs, samples=20)
                print(f"{first} and {second}, {flat} flat: {means}", file=sys.stderr)
                if flat == first:
                    self.assertLessEqual(means[0], 2.5)
                    self.assertGreaterEqual(means[1], 5.5)
                else:
                    self.assertGreaterEqual(means[0], 3.5)
                for program in programs:
                    program.kill()
                self.end_daemon()


if __name__ == "__main__":
    instance.main()
