"""What a program is told of its GPU is what is guaranteed to its slice: the same number of SMs by every way to ask,
from the first question to the end of the program, and the same memory."""

import re

from tests.system.harness import instance

MIB = 1 << 20
ALL = instance.SMS


class Asked(instance.Conversation):
    """tests/cuda/told.cu."""

    def __init__(self, test, slice_path, env=None):
        env = dict(env or test.env_of_others())
        command = [instance.CUDA_PROGRAMS / "told"]
        if slice_path is None:
            paths = [str(instance.SOFTGPU), env.get("LD_LIBRARY_PATH")]
            env["LD_LIBRARY_PATH"] = ":".join(path for path in paths if path)
        else:
            command = [instance.GPUCTL, "run", "--slice", slice_path, *command]
        super().__init__(test, command, env)

    def told(self):
        return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", self.ask("ask"))}


class Told(instance.SystemTest):
    def assert_sms(self, program, sms):
        told = program.told()
        for name in ("properties", "attribute", "dlsym", "look_up"):
            self.assertEqual(told[name], sms, (name, told))
        for name in ("grid", "driver_grid", "flags_grid"):
            self.assertEqual(told[name], sms * told["per_sm"], (name, told))
        return told

    def assert_memory(self, program, total, free=None):
        told = program.told()
        for name in ("properties_memory", "total_memory", "info_total"):
            self.assertEqual(told[name], total, (name, told))
        self.assertEqual(told["info_free"], total if free is None else free)

    def assert_right(self, program, sms):
        """What it computes on grids of the size that it was told of."""
        per_sm = program.told()["per_sm"]
        self.assertEqual(program.ask("grid"), f"ok {sms * per_sm}")
        said, blocks = program.ask("cooperative").split()
        self.assertEqual((said, int(blocks) % sms), ("ok", 0))

    def said(self, slice_path, program):
        """Of `gpuctl explain` and the JSON."""
        said = self.gpuctl("explain", program.pid).stdout
        self.assertIn("in force on GPU 0: ", said)
        found = re.search(r"^  told of (\d+) SMs?$", said, re.MULTILINE)
        return self.usage(slice_path, program.pid)["sms_told"], int(found[1]) if found else 0

    def test_the_plain_values_without_gpuctl_and_where_nothing_limits(self):
        plain = Asked(self, None)
        told = self.assert_sms(plain, ALL)
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        program = Asked(self, "s")
        self.assertEqual(program.told(), told)
        self.assert_right(program, ALL)
        self.assertEqual(self.said("s", program), (0, 0))

    def test_a_max(self):
        """SMs come in pairs: that is what a part of the GPU has, to which kernels without another form are confined."""
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", 6)
        self.gpuctl("create-slice", "s/below", "--max", 3)
        self.gpuctl("create-slice", "one", "--max", 1)
        for path, sms in (("s", 6), ("s/below", 2), ("one", 1)):
            with self.subTest(path):
                program = Asked(self, path)
                self.assert_sms(program, sms)
                self.assert_right(program, sms)
                self.assertEqual(self.said(path, program), (sms, sms))

    def test_beside_a_reserve_that_is_not_lent(self):
        self.start_daemon()
        self.gpuctl("create-slice", "ls", "--reserve", 2)
        self.gpuctl("create-slice", "batch")
        self.gpuctl("create-slice", "limited", "--max", 7)
        for mode in ("strict", "active"):
            self.gpuctl("set", "ls", f"reserve-mode={mode}")
            for path, sms in (("batch", ALL - 2), ("limited", ALL - 2), ("ls", ALL), ("/", ALL - 2)):
                with self.subTest(path, mode=mode):
                    program = Asked(self, path)
                    self.assert_sms(program, sms)
                    self.assert_right(program, sms)
                    program.end()

    def test_what_a_reserve_leaves_counts_as_it_is_divided(self):
        """The device's last SMs, whose last group has what is left over: six, where the others have four."""
        self.env["SOFTGPU_SMS"] = "34"
        self.start_daemon(config="")
        self.gpuctl("create-slice", "ls", "--reserve", 3, "--reserve-mode", "strict")
        self.gpuctl("create-slice", "batch")
        self.gpuctl("create-slice", "limited", "--max", 31)
        for path, sms in (("batch", 30), ("limited", 30)):
            with self.subTest(path):
                program = Asked(self, path)
                self.assert_sms(program, sms)
                program.end()

    def test_the_first_answer_stays(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", 4)
        early, asked_late = Asked(self, "s"), Asked(self, "s")
        self.assert_sms(early, 4)
        for change in ("max=6", "max=none", "max=1"):
            self.gpuctl("set", "s", change)
            self.assert_sms(early, 4)
            self.assert_right(early, 4)
        self.gpuctl("set", "s", "max=6")
        self.assert_sms(asked_late, 6)
        self.assert_sms(early, 4)
        self.assertEqual((self.said("s", early), self.said("s", asked_late)), ((4, 4), (6, 6)))
        self.daemon.kill()
        self.assert_sms(early, 4)
        self.start_daemon()
        instance.wait_until(lambda: len(self.clients("s")) == 2, "the programs to come back")
        self.assert_sms(early, 4)
        self.assertEqual(self.said("s", early), (4, 4))

    def test_all_who_ask_first_at_once_hear_the_same(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", 4)
        self.assertEqual(Asked(self, "s").ask("sms"), "4")

    def test_a_daemon_that_comes_later_changes_nothing(self):
        """The first question was asked without one."""
        library = instance.BUILD / "src/libgpuslice/libgpuslice.so"
        env = self.env_of_others()
        preload = " ".join(filter(None, (env.get("LD_PRELOAD"), str(library))))
        program = Asked(self, None, env={**env, "GPUCTL_SLICE": "s", "LD_PRELOAD": preload})
        self.assert_sms(program, ALL)
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", 4)
        instance.wait_until(lambda: self.clients("s"), "the program to attach")
        self.assert_sms(program, ALL)
        self.assert_right(program, ALL)
        self.assertEqual(self.said("s", program), (0, 0))

    def test_a_program_that_was_told_of_fewer_uses_all_that_it_is_granted_later(self):
        """The library itself goes by what there is."""
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", 4)
        program = self.start_bench("s", "work", "--blocks", 64, "--iterations", 20, "--seconds", 60)
        instance.wait_until(
            lambda: (self.usage("s", program.pid) or {"holding": 0})["holding"] == 4, "four SMs to be held"
        )
        self.gpuctl("set", "s", "max=none")
        instance.wait_until(lambda: self.usage("s", program.pid)["holding"] == ALL, "all SMs to be held")
        self.assertEqual(self.said("s", program)[0], 4)

    def test_linked_with_the_driver(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", 4, "--memory-max", "64M")
        program = self.start_in("s", instance.DRIVER_PROGRAMS / "told_linked")
        self.assertEqual(program.wait(), 0, program.err())
        self.assertEqual(program.out(), f"4 {64 * MIB}\n")

    def test_memory_is_the_same_by_every_way_to_ask(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--memory-max", "64M")
        program = Asked(self, "s")
        self.assert_memory(program, 64 * MIB)
        self.assertEqual(program.ask("hold", 40 * MIB), "ok")
        self.assert_memory(program, 64 * MIB, 24 * MIB)
        self.assertEqual(program.ask("hold", 25 * MIB), "refused")
        # Unlike the number of SMs it follows the limit: what is free does, and more than all cannot be free.
        self.gpuctl("set", "s", "memory-max=96M")
        self.assert_memory(program, 96 * MIB, 56 * MIB)
        self.daemon.kill()
        self.assert_memory(program, 96 * MIB, 56 * MIB)


if __name__ == "__main__":
    instance.main()
