"""freeze, thaw and move in the middle of a kernel: who is frozen leaves within a block-task, begins nothing and loses
no work, and who is moved has at once what its new slice has."""

import sys
import time

from tests.system.harness import instance
from tests.system.harness.slice_shell import LONG, SliceShell

RUN = (instance.GPUCTL, "run", "--slice")
SHORT = (8, 2)


class Freeze(instance.SystemTest):
    def shell(self, slice_path):
        shell = SliceShell(self, (*RUN, slice_path))
        shell.do("init")
        return shell

    def busy(self, slice_path):
        shell = self.shell(slice_path)
        shell.do("launch", 0, *LONG)
        self.wait_for(slice_path, shell, "holding", lambda sms: sms > 0)
        return shell

    def wait_for(self, slice_path, shell, field, right):
        instance.wait_until(
            lambda: (usage := self.usage(slice_path, shell.pid)) and right(usage[field]),
            f"{field} of the program in {slice_path}",
            interval=0.001,
        )

    def assert_runs_nothing(self, shell, beside):
        """Blocks of another program begin, and none of this one, once it has left. What the daemon says that it holds
        may be 0 a little earlier, if the machine is so busy that the program gives no sign of life.
        """

        def others_alone():
            begun, others = len(shell.records(0)), len(beside.records(0))
            instance.wait_until(
                lambda: len(beside.records(0)) > others + instance.SMS, "the program beside it to go on"
            )
            return len(shell.records(0)) == begun

        instance.wait_until(others_alone, "the program to begin no block while another goes on")

    def freeze_in_the_middle(self, isolation):
        self.gpuctl("create-slice", "ice", "--reserve", 2, "--reserve-mode", "strict", "--isolation", isolation)
        self.gpuctl("create-slice", "ice/below")
        self.gpuctl("create-slice", "beside")
        beside, frozen = self.busy("beside"), self.busy("ice/below")
        began = time.monotonic()
        self.gpuctl("freeze", "ice")
        self.wait_for("ice/below", frozen, "holding", lambda sms: sms == 0)
        print(f"{isolation}: left {(time.monotonic() - began) * 1000:.0f} ms after the command", file=sys.stderr)
        self.wait_for("beside", beside, "holding", lambda sms: sms == instance.SMS)
        self.assert_runs_nothing(frozen, beside)
        self.assertRegex(self.gpuctl("list").stdout, r"\n +below .*- \(frozen\)")
        self.assertRegex(self.gpuctl("show", "ice").stdout, r"\ngranted +0 SMs of [1-9]\d* wanted\n")
        return frozen, beside

    def test_a_kernel_leaves_and_goes_on_when_it_is_thawed(self):
        self.start_daemon()
        frozen, beside = self.freeze_in_the_middle("shared")
        self.assertIn("frozen        yes: its programs get no SMs until", self.gpuctl("show", "ice").stdout)
        self.daemon.kill()
        self.start_daemon()
        instance.wait_until(lambda: self.usage("ice/below", frozen.pid), "it to come back")
        self.assert_runs_nothing(frozen, beside)
        self.gpuctl("thaw", "ice")
        self.wait_for("ice/below", frozen, "holding", lambda sms: sms >= 2)
        frozen.finish(0)
        beside.finish(0)

    def test_a_program_that_takes_turns_gets_none(self):
        self.start_daemon()
        frozen, beside = self.freeze_in_the_middle("isolated")
        self.gpuctl("thaw", "ice")
        self.wait_for("ice/below", frozen, "holding", lambda sms: sms > 0)
        frozen.finish(0)
        beside.finish(0)

    def test_what_is_launched_meanwhile_waits(self):
        self.start_daemon(config="")  # kernels in original form
        self.gpuctl("create-slice", "ice")
        shell = self.shell("ice")
        self.gpuctl("freeze", "ice")
        other = self.start_in("ice", "true")
        self.assertEqual(other.wait(), 0)
        self.assertIn("'ice' has no SMs (frozen): what it launches waits", other.err())
        shell.tell("launch", 0, *SHORT)
        self.wait_for("ice", shell, "demand", lambda sms: sms > 0)
        thawed_ns = time.monotonic_ns()
        self.gpuctl("thaw", "ice")
        self.assertEqual(shell.answer("launch"), "ok")
        shell.do("finish")
        records = shell.records(0)
        self.assertEqual(len(records), SHORT[0])
        self.assertGreater(min(record.start_ns for record in records), thawed_ns)

    def test_a_program_is_moved_in_the_middle_of_a_kernel(self):
        self.start_daemon()
        self.gpuctl("create-slice", "small", "--max", 2)
        self.gpuctl("create-slice", "large")
        shell = self.busy("small")
        self.wait_for("small", shell, "holding", lambda sms: sms == 2)
        self.gpuctl("move", shell.pid, "large")
        self.wait_for("large", shell, "holding", lambda sms: sms == instance.SMS)
        self.assertEqual(self.clients("small"), [])
        self.daemon.kill()
        self.start_daemon()
        instance.wait_until(lambda: self.usage("large", shell.pid), "it to come back where it was moved to")
        self.gpuctl("move", shell.pid, "small")
        self.wait_for("small", shell, "holding", lambda sms: sms == 2)
        self.assertRegex(self.gpuctl("events", "small").stdout, rf"moved +small +{shell.pid} .*: from large by root")
        shell.finish(0)


if __name__ == "__main__":
    instance.main()
