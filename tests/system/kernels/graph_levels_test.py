"""Kernels of a graph that keep the level of their capture, as PyTorch's graphs have them, follow a slice's priority."""

from tests.system.harness import instance

PROGRAM = instance.DRIVER_PROGRAMS / "graph_levels"
BY_NODE = 8  # CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY


class GraphLevels(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.start_daemon(config="")
        self.gpuctl("create-slice", "ls", "--priority", 50)
        self.gpuctl("create-slice", "batch")

    def start_program(self, *captured, run=(instance.GPUCTL, "run", "--slice", "batch")):
        program = instance.Conversation(self, [*run, PROGRAM, *captured], self.env)
        self.assertEqual(program.answer("start"), f"ready {BY_NODE}")
        return program

    @staticmethod
    def levels(program, *command):
        return [int(level) for level in program.ask(*command).split()]

    def become_the_greatest(self, program):
        """Of three: levels -3 and -4."""
        self.gpuctl("set", "batch", "priority=60")
        instance.wait_until(lambda: self.levels(program, "plain", 0) == [-3], "the stream to follow")

    def test_they_follow_the_slices_priority(self):
        program = self.start_program(0)
        self.assertEqual(self.levels(program, "graph", 0), [0])
        self.become_the_greatest(program)
        self.assertEqual(self.levels(program, "graph", 0), [-3])
        self.gpuctl("set", "batch", "priority=0")
        instance.wait_until(lambda: self.levels(program, "graph", 0) == [0], "the graph to follow")

    def test_they_keep_their_own_priority_within_the_slices(self):
        program = self.start_program(-5)
        self.assertEqual(self.levels(program, "graph", 0), [-1])
        self.assertEqual(self.levels(program, "plain", 0), [0], "the stream has its own level back")
        self.become_the_greatest(program)
        self.assertEqual(self.levels(program, "graph", 0), [-4])
        self.assertEqual(self.levels(program, "plain", 0), [-3])
        self.assertEqual(self.levels(program, "graph", -5), [-4])

    def test_of_a_lesser_priority_than_the_stream(self):
        program = self.start_program(0)
        self.assertEqual(self.levels(program, "graph", -5), [0])
        self.become_the_greatest(program)
        self.assertEqual(self.levels(program, "graph", -5), [-3])
        self.assertEqual(self.levels(program, "plain", -5), [-4])

    def test_a_graph_captured_after_the_priority_changed(self):
        """Its stream, in which nothing was launched since, has another level than before."""
        program = self.start_program(0)
        self.become_the_greatest(program)
        self.assertEqual(self.levels(program, "again", 0), [0])
        self.assertEqual(self.levels(program, "graph", 0), [-3])
        self.assertEqual(self.levels(program, "again", -5), [0])
        self.assertEqual(self.levels(program, "graph", 0), [-4])

    def test_kernels_of_different_priorities_keep_the_levels_of_their_capture(self):
        program = self.start_program(0, -5)
        self.assertEqual(self.levels(program, "graph", 0), [0, -1])
        self.become_the_greatest(program)
        self.assertEqual(self.levels(program, "graph", 0), [0, -1])

    def test_without_gpuctl_they_keep_the_levels_of_their_capture(self):
        program = self.start_program(-3, run=("env", "-u", "GPUCTL_SOCKET"))
        self.assertEqual(self.levels(program, "graph", 0), [-3])
        self.assertEqual(self.levels(program, "graph", -5), [-3])


if __name__ == "__main__":
    instance.main()
