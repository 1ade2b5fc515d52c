"""However a program comes to launch its kernels, they are evicted as others are, and every result is right
(tests/driver/ways_in.cc)."""

import sys

from tests.system.harness import instance

PROGRAM = instance.DRIVER_PROGRAMS / "ways_in"
WAYS = {
    "contexts": 10,
    "threads": 20,
    "attributes": 50,
    "unload": 40,
    "free": 50,
    "opened": 50,
    "fork": 30,
    "destructor": 60,
}
RESULTS = {"contexts": 20, "threads": 80, "destructor": 1}  # else as many as rounds
STORM_US = 1000  # between two random grants


class WaysIn(instance.SystemTest):
    warp_instruction_ns = 4000

    def test_every_way(self):
        self.start_daemon("--evict-storm", STORM_US)
        self.gpuctl("create-slice", "s")
        for way, rounds in WAYS.items():
            with self.subTest(way):
                program = self.start_in("s", PROGRAM, way, rounds)
                launches = evictions = 0
                while program.process.poll() is None:
                    usage = [usage for client in self.clients("s") for usage in client["usage"]]
                    launches = max(launches, sum(one["launches"] for one in usage))
                    evictions = max(evictions, sum(one["evictions"] for one in usage))
                    instance.time.sleep(0.01)
                self.assertEqual(program.wait(), 0, program.err() + program.out())
                self.assertEqual(program.err(), "")
                self.assertEqual(program.out(), f"ways_in {way}: {RESULTS.get(way, rounds)} results, 0 wrong\n")
                # Once a program exits nothing of it is managed: no agent may be in the driver then.
                if way != "destructor":
                    self.assertGreater(launches, 0)
                    self.assertGreater(evictions, 0)
                print(f"{way}: {launches} launches, {evictions} evictions", file=sys.stderr)


if __name__ == "__main__":
    instance.main()
