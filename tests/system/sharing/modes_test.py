"""From each mode of a program to each other one, in the middle of a kernel: what becomes of that kernel, and how the
next one runs (docs/architecture.md, "Modes"). All results are right."""

import itertools

from tests.system.harness import instance
from tests.system.harness.slice_shell import SliceShell

LONG = (2_000 * instance.SLOWER, 200)
# What makes each mode, of slice p and of slice q, which has a program that does nothing.
SETTINGS = {
    "free": (("max=none", "weight=100"), ("reserve=0", "max=none")),
    "common": (("max=4", "weight=100"), ("reserve=0", "max=none")),
    "part": (("max=2", "weight=200"), ("reserve=0", "max=6")),
    "lent": (("max=none", "weight=100"), ("reserve=2", "max=none")),
    "workers": (("max=none", "weight=200"), ("reserve=0", "max=none")),
    "capacity": (("max=none", "weight=200"), ("reserve=0", "max=none")),
}
MOST = {"common": 4, "part": 2}
AS_LAUNCHED = ("free", "common", "part")


class Modes(instance.SystemTest):
    warp_instruction_ns = 0

    def go_to(self, mode):
        own, other = SETTINGS[mode]
        self.gpuctl("set", "q", *other)
        self.gpuctl("set", "p", *own)
        instance.wait_until(lambda: self.usage("p", self.shell.pid)["mode"] == mode, f"mode {mode}")

    def block_tasks(self):
        return self.usage("p", self.shell.pid)["block_tasks"]

    def launch(self, stream):
        self.shell.do("launch", stream, *LONG)
        instance.wait_until(lambda: self.shell.look(stream)[0] > 0, "the kernel to begin")

    def through_all(self, modes, config):
        self.start_daemon(config=config)
        self.gpuctl("create-slice", "q")
        self.gpuctl("create-slice", "p")
        self.start_idle_in("q")
        self.shell = SliceShell(self, (instance.GPUCTL, "run", "--slice", "p"))
        self.shell.do("init")
        for before, after in itertools.permutations(modes, 2):
            with self.subTest(before=before, after=after):
                self.change(before, after)

    def change(self, before, after):
        self.go_to(before)
        self.launch(0)
        where = self.shell.sms_now(0)
        self.assertLessEqual(len(where), MOST.get(before, instance.SMS))
        self.go_to(after)
        if before in AS_LAUNCHED:
            self.assertLessEqual(self.shell.sms_now(0), where, "it goes on where it is")
        else:
            most = MOST.get(after, instance.SMS)
            instance.wait_until(lambda: len(self.shell.sms_now(0)) <= most, "workers to leave")
        self.shell.finish()
        tasks = self.block_tasks()
        self.launch(0)
        self.assertLessEqual(len(self.shell.sms_now(0)), MOST.get(after, instance.SMS))
        self.shell.finish()
        self.assertEqual(self.block_tasks() == tasks, after in AS_LAUNCHED, "the form of the next kernel")

    def test_side_by_side(self):
        self.through_all(("free", "common", "part", "lent", "workers"), "")


if __name__ == "__main__":
    instance.main()
