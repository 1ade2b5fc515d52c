"""Real programs (tests/programs): what they compute is the same plain, in a slice, and in a storm of evictions."""

import re

from tests.system.harness import instance

PROGRAMS = instance.BUILD / "tests/programs"
LINE = re.compile(
    r"(\w+): (\d+) rounds, hash ([0-9a-f]{16}), loop ([0-9.]+) s, first result ([0-9.]+) s after its start\n"
)
ROUNDS = 40
STORM_US = 1500


class Programs(instance.SystemTest):
    warp_instruction_ns = 5000

    def result(self, program):
        """The hash of a program that ran to its end."""
        self.assertEqual(program.wait(), 0, program.err())
        line = LINE.fullmatch(program.out())
        self.assertTrue(line, program.out())
        self.assertEqual(int(line[2]), ROUNDS + 1)
        return line[3]

    def check(self, name, *arguments):
        command = (PROGRAMS / name, *arguments, ROUNDS)
        if not command[0].exists():
            self.skipTest(f"{name} was not built: the CUDA toolkit has no libnvrtc")
        plain = self.result(self.start(*command))
        self.start_daemon("--evict-storm", STORM_US)
        self.gpuctl("create-slice", "s")
        self.assertEqual(self.result(self.start_in("s", *command)), plain)
        evictions = self.ended("s", 1)["ended_evictions"]
        self.assertGreater(evictions, 0)  # how many in so short a time is up to the machine's other load

    def test_nvrtc(self):
        self.check("nvrtc_program", 2, "ptx")

    def test_graph(self):
        self.check("graph_program", 2)


if __name__ == "__main__":
    instance.main()
