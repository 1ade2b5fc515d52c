"""Bursts and requests are counted where they are, and take as long as they do: from the first launch with nothing
outstanding to the return of the wait that sees all done (docs/design/bursts.md). The program sleeps between the two, so
it knows how long a burst takes at least, and measures how long at most."""

import sys

from tests.system.harness import instance

BURSTS = instance.DRIVER_PROGRAMS / "bursts"
ROUNDS, MS = 6, 20
HALF_BUCKET = 17 / 16
MODES = {
    "common": ("max=4",),
    "workers": ("max=none", "weight=200"),
}
REQUESTS_IN_PYTHON = """
import ctypes, time
cuda, library = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None)
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
begin = getattr(library, "gpuslice_request_begin", None)
if begin is None:
    print("no library", flush=True)
    raise SystemExit
end = library.gpuslice_request_end
begin.restype, end.argtypes = ctypes.c_uint64, [ctypes.c_uint64]
for _ in range(6):
    request = begin()
    time.sleep(0.02)
    assert end(request) == 0
print("ready", flush=True)
input()
"""


class Bursts(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.start_daemon(config="")
        self.gpuctl("create-slice", "q")
        self.gpuctl("create-slice", "p")
        self.start_idle_in("q")

    def run_kind(self, kind, rounds=ROUNDS):
        """The program, when it has done its rounds, and how many ms the longest took."""
        command = [instance.GPUCTL, "run", "--slice", "p", BURSTS, kind, rounds, MS]
        program = instance.Conversation(self, command, self.env)
        return program, float(program.answer(kind))

    def latency(self, pid, seconds=0):
        usage = self.usage("p", pid)
        return next((one for one in usage["latency"] if one["seconds"] == seconds), None)

    def assertCounted(self, of, said, rounds, least_ms, most_ms):
        self.assertEqual((said["of"], said["count"]), (of, rounds))
        self.assertGreaterEqual(said["p50_us"], 1000 * least_ms / HALF_BUCKET)
        self.assertLessEqual(said["p999_us"], 1000 * most_ms * HALF_BUCKET)
        self.assertLessEqual(said["p50_us"], said["p99_us"])

    def check(self, kind, rounds=ROUNDS, of="bursts"):
        with self.subTest(kind=kind):
            program, longest_ms = self.run_kind(kind)
            counted = instance.wait_until(
                lambda: (found := self.latency(program.pid)) and found["count"] >= rounds and found,
                f"{rounds} {of} of {kind}",
            )
            self.assertCounted(of, counted, rounds, MS, longest_ms)
            program.end()

    def test_every_way_to_wait(self):
        for kind in ("stream", "context", "stream-query", "event", "event-query", "copy-back"):
            self.check(kind)

    def test_every_kind_of_work(self):
        for kind in ("copies", "graph", "joined", "two-streams", "behind", "two-threads"):
            self.check(kind)

    def test_every_mode(self):
        for mode in MODES:
            with self.subTest(mode=mode):
                self.gpuctl("set", "p", *MODES[mode])
                for kind in ("stream", "event", "graph", "two-streams", "copies"):
                    self.check(kind)

    def test_a_call_that_waits_on_its_way(self):
        program, longest_ms = self.run_kind("free")
        said = instance.wait_until(
            lambda: (found := self.latency(program.pid)) and found["count"] == 2 * ROUNDS and found, "all bursts"
        )
        self.assertGreaterEqual(said["p99_us"], 1000 * MS / HALF_BUCKET)
        self.assertLessEqual(said["p999_us"], 1000 * longest_ms * HALF_BUCKET)

    def test_a_program_that_never_waits(self):
        program, _ = self.run_kind("no-waits")
        instance.wait_until(lambda: self.usage("p", program.pid)["launches"] == ROUNDS, "its launches")
        self.assertEqual(self.usage("p", program.pid)["latency"], [])
        self.assertIn("no latency: the program has not waited", self.gpuctl("explain", program.pid).stdout)
        self.assertRegex(self.gpuctl("show", "p").stdout, "(?m)^latency +none measured$")

    def test_requests_count_and_bursts_do_not(self):
        self.check("requests", 2 * ROUNDS, "requests")

    def test_requests_in_python(self):
        program = self.start_script_in("p", REQUESTS_IN_PYTHON)
        said = instance.wait_until(
            lambda: (found := self.latency(program.pid)) and found["count"] >= 6 and found, "the requests"
        )
        self.assertEqual((said["of"], said["count"]), ("requests", 6))
        self.assertGreaterEqual(said["p50_us"], 20_000 / HALF_BUCKET)

    def test_requests_without_the_library(self):
        plain = self.start(sys.executable, "-c", REQUESTS_IN_PYTHON, env=self.env_of_others())
        self.assertEqual(plain.wait(), 0, plain.err())
        self.assertEqual(plain.out(), "no library\n")
        bursts = self.start(BURSTS, "requests", 1, 1, env=self.env_of_others())
        self.assertEqual(bursts.wait(), 0, bursts.err())

    def test_the_bench_has_a_burst_for_each_launch_where_it_does_not_compare_each_result(self):
        launches, before = 40, 0
        size = ("work", "--blocks", 4, "--iterations", 40, "--arrival", "periodic", "--period-us", 5000)
        for programs, (check, least, most) in enumerate((("last", 1, 1.5), ("all", 2.5, 3.5)), 1):
            bench = self.start_bench("p", *size, "--count", launches, "--check", check)
            self.assertEqual(bench.wait(), 0, bench.err())
            counted = next(one["count"] for one in self.ended("p", programs)["latencies"] if one["seconds"] == 0)
            with self.subTest(check=check):
                self.assertGreaterEqual(counted - before, least * launches)
                self.assertLessEqual(counted - before, most * launches)
            before = counted

    def test_a_slice_adds_up_its_programs_and_outlives_them(self):
        self.gpuctl("create-slice", "p/below")
        self.run_kind("stream")[0].end()
        self.ended("p", 1)
        below = self.start_in("p/below", BURSTS, "context", 3, MS)
        self.assertEqual(below.wait(), 0, below.err())
        said = self.ended("p", 2)["latencies"]
        self.assertEqual([one["count"] for one in said if one["seconds"] == 0], [ROUNDS + 3])
        self.assertRegex(self.gpuctl("show", "p").stdout, rf"(?m)^latency +{ROUNDS + 3} bursts: p50 \d")
        self.gpuctl("delete-slice", "p/below")
        self.assertEqual(self.call("GetSlice", path="p")["slice"]["latencies"][-1]["count"], ROUNDS + 3)


if __name__ == "__main__":
    instance.main()
