"""A program whose libgpuslice gets no memory, threads or descriptors from the system behaves as it does plain."""

import re

from tests.system.harness import instance

STARVED = instance.DRIVER_PROGRAMS / "starved"
FAR = 10**9  # no request has this number
PLACES = 60  # at which memory is refused, spread over all requests


class Starved(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", 3)
        self.debug = self.scratch / "debug"

    def starve(self, what, first, children=1, step=1):
        """Returns how many requests there were. Each child must have done what it does plain."""
        env = {**self.env_of_others(), "GPUSLICE_DEBUG": str(self.debug)}
        program = self.start_in("s", STARVED, what, first, children, step, env=env)
        self.assertEqual(program.wait(), 0, program.err() + program.out())
        said = re.match(r"starved \w+: (\d+) children, 0 failed, (\d+) requests$", program.out())
        self.assertEqual(int(said[1]), children, program.out())
        self.assertEqual(program.err(), "")
        return int(said[2])

    def log(self):
        return self.debug.read_text()

    def test_nothing_is_refused(self):
        for what in ("memory", "threads", "descriptors"):
            self.assertGreater(self.starve(what, FAR), 0, what)
        self.assertIn("context managed", self.log())

    def test_no_thread(self):
        self.starve("threads", 1)
        self.assertIn("no thread for the connection to gpuctld", self.log())
        self.assertNotIn("attached to slice", self.log())

    def test_no_second_thread(self):
        self.starve("threads", 2)
        self.assertIn("attached to slice", self.log())
        self.assertIn("no thread for an agent", self.log())

    def test_no_memory_from_anywhere_on(self):
        requests = self.starve("memory", FAR)
        self.starve("memory", 1, 20)
        self.starve("memory", 21, PLACES, max(1, requests // PLACES))

    def test_no_descriptor_from_anywhere_on(self):
        requests = self.starve("descriptors", FAR)
        self.starve("descriptors", 1, requests)


if __name__ == "__main__":
    instance.main()
