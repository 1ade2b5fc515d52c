"""policy=sim tries whether programs get on better when they are left to the GPU."""

from tests.system.harness import instance

# Blocks that fill the GPU, so that what the two programs get depends on who divides it.
LONG = ("work", "--blocks", 64, "--iterations", 20, "--seconds", 40, "--check", "last")
NO_SHORT_ONES = 'lab.latency_target_us = 1\nlab.placement = "capacity"\n'


class Trial(instance.SystemTest):
    def forms(self, programs):
        """What is in force for each."""
        clients = {client["pid"]: client for client in self.clients("/")}
        return {clients[p.pid]["usage"][0]["in_force"] for p in programs if p.pid in clients}

    def test_both_ways_are_tried_and_change_no_result(self):
        self.start_daemon(config=NO_SHORT_ONES)
        self.gpuctl("set", "/", "policy=sim")
        programs = [self.start_bench("/", *LONG) for _ in "ab"]
        for seen in ("jobs", "nothing"):
            instance.wait_until(lambda: self.forms(programs) == {seen}, f"{seen} to be in force", interval=0.01)
        for program in programs:
            self.assertRightResults(program.stop())


if __name__ == "__main__":
    instance.main()
