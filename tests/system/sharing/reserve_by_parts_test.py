"""Beside kept reserves and below maxima alone, kernels that could be evicted keep their original form, confined to the
SMs that are left (reserve_by_parts), and get the other form back when something else comes into force."""

from tests.system.harness import instance
from tests.system.harness.sms import seen_by, watch_sms
from tests.system.sharing import opaque_test
from tests.system.sharing.opaque_test import MS, ROUNDS, WHAT_WAS_THERE

RESERVE = 4
# Each answer says on which SMs the kernels ran.
OPAQUE = opaque_test.PROGRAM.replace('bin(mask.value).count("1")', "hex(mask.value)")
# The same kernels, but the first can be rewritten.
PROGRAM = OPAQUE.replace("  mov.u64 %rd6, %gridid;\n", "", 1)
BESIDE = "launched while no SM has to be given back in its original form"
# A program whose launches have clusters of as many blocks as it is told.
IN_CLUSTERS = (
    PROGRAM.replace(
        "kind, first, rounds, nanoseconds = line.split()", "kind, first, rounds, nanoseconds, cluster = line.split()"
    )
    .replace("append(on, number, int(nanoseconds))", "append(on, number, int(nanoseconds), int(cluster))")
    .replace("def append(stream, number, nanoseconds):", "def append(stream, number, nanoseconds, cluster):")
    .replace(
        'call("cuLaunchKernel", function, BLOCKS, 1, 1, 1024, 1, 1, 0, stream, pointers, None)',
        """U32 = ctypes.c_uint32
    class Config(ctypes.Structure):
        _fields_ = [("shape", U32 * 7), ("stream", POINTER), ("attributes", POINTER), ("count", U32)]
    attribute = (U32 * 18)(4, 0, cluster, 1, 1)  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    if cluster == 0:
        call("cuLaunchKernel", function, BLOCKS, 1, 1, 1024, 1, 1, 0, stream, pointers, None)
        return
    shape = (U32 * 7)(BLOCKS, 1, 1, 1024, 1, 1, 0)
    config = Config(shape, stream, ctypes.cast(attribute, POINTER), 1)
    call("cuLaunchKernelEx", ctypes.byref(config), function, pointers, None)""",
    )
    .replace(
        "for line in sys.stdin:\n",
        f"""for line in sys.stdin:
    if line == "go on\\n":
        first, second = stream("non-blocking"), stream("non-blocking")
        append(first, 1, {MS}, 0)
        append(second, 1, {MS}, 4)
        call("cuStreamSynchronize", second)
        call("cuMemsetD32Async", seen, 0, SIZE(1), first)
        for number in range({ROUNDS}): append(first, 1, {MS}, 0)
        call("cuStreamSynchronize", first)
        mask = ctypes.c_uint32()
        call("cuMemcpyDtoH_v2", ctypes.byref(mask), seen, SIZE(4))
        print(hex(mask.value), flush=True)
        continue
""",
    )
)
# By its own declaration; of a module, of a library, and as the function that a library's kernel has in the context.
OF_FOUR = IN_CLUSTERS.replace("nanoseconds)\n{", "nanoseconds)\n.reqnctapercluster 4, 1, 1\n{", 1).replace(
    "sm_80", "sm_90"
)
OF_A_LIBRARY = OF_FOUR.replace(
    'call("cuModuleGetFunction", ctypes.byref(function), module, b"append")',
    """library = made("cuLibraryLoadData", PTX, None, None, 0, None, None, 0)
    function = made("cuLibraryGetKernel", library, b"append")""",
)
ITS_FUNCTION = OF_A_LIBRARY.replace(
    'library, b"append")', 'library, b"append")\n    function = made("cuKernelGetFunction", function)'
)


class ReserveByParts(instance.SystemTest):
    warp_instruction_ns = 0

    def start_beside(self, by_parts, mode, program=PROGRAM):
        config = f"lab.latency_target_us = 1\nlab.reserve_by_parts = {by_parts}\n"
        self.start_daemon(config=config)
        self.gpuctl("create-slice", "ls", "--reserve", RESERVE, "--reserve-mode", mode)
        self.program = self.start_launcher("batch", program)

    def start_launcher(self, name, program):
        self.gpuctl("create-slice", name)
        return self.start_script_in(name, program)

    def launch(self, kind="non-blocking", nanoseconds=MS):
        """Launches, whose results are right. The SMs that they ran on, and the block-tasks of rewritten kernels."""
        before = self.usage("batch", self.program.pid)["block_tasks"]
        wrong, in_order, mask = self.program.ask(kind, WHAT_WAS_THERE, ROUNDS, nanoseconds).split()
        self.assertEqual((wrong, in_order), ("0", "True"))
        return int(mask, 16), self.usage("batch", self.program.pid)["block_tasks"] - before

    def goes_by_parts(self, always_kept):
        """Whether a launch kept its original form, on what the reserve leaves."""
        mask, block_tasks = self.launch()
        within = mask.bit_count() <= instance.SMS - RESERVE
        self.assertTrue(within or not always_kept, hex(mask))
        return within and block_tasks == 0

    def assertEvictable(self, other):
        """Its kernels stop for those of the other program, which weighs more."""

        def evicted():
            self.program.process.stdin.write(f"non-blocking {WHAT_WAS_THERE} {ROUNDS} {MS}\n")
            self.program.process.stdin.flush()
            before = self.evictions_of("batch", self.program)
            other.ask("non-blocking", WHAT_WAS_THERE, ROUNDS, MS)
            self.assertEqual(self.program.answer("the launches").split()[:2], ["0", "True"])
            return self.evictions_of("batch", self.program) > before

        instance.wait_until(evicted, "an eviction")

    def test_beside_a_strict_reserve(self):
        self.start_beside("true", "strict")
        sms = set()
        for kind in ("legacy", "per-thread", "blocking", "non-blocking"):
            with self.subTest(stream=kind):
                mask, block_tasks = self.launch(kind)
                self.assertEqual(block_tasks, 0)
                sms.add(mask)
        (mask,) = sms
        self.assertEqual(mask.bit_count(), instance.SMS - RESERVE)
        instance.wait_until(lambda: self.explains(BESIDE, "on 4 (a green context)"), "it to be said")
        # A program with the reserve is there, and at work. What that leaves may be granted in steps.
        busy = self.start_bench("ls", "work", "--blocks", RESERVE, "--iterations", 20, "--seconds", 60)
        instance.wait_until(lambda: (self.usage("ls", busy.pid) or {"launches": 0})["launches"], "launches")
        instance.wait_until(lambda: self.goes_by_parts(always_kept=True), "original kernels beside it")
        # Something else comes into force, and goes.
        other = self.start_launcher("other", PROGRAM)
        self.gpuctl("set", "other", "weight=300")
        instance.wait_until(lambda: self.launch()[1] > 0, "rewritten kernels")
        self.assertEvictable(other)
        self.gpuctl("set", "other", "weight=100")
        instance.wait_until(lambda: self.goes_by_parts(always_kept=True), "original kernels again")

    def test_below_a_max_live(self):
        self.start_beside("true", "active")
        self.gpuctl("set", "ls", "reserve=0")
        for most in (2, 6, 4):
            self.gpuctl("set", "batch", f"max={most}")
            instance.wait_until(lambda: self.launch() == (2**most - 1, 0), "original kernels on so many SMs")
        self.assertEqual(self.usage("batch", self.program.pid)["in_force"], "max")
        # Programs below one max have its SMs in common; a slice below it has some of those.
        self.gpuctl("create-slice", "batch/less", "--max", 2)
        within = self.start_script_in("batch/less", PROGRAM)
        self.start_script_in("batch", PROGRAM).ask("hold")
        self.assertEqual(self.launch(), (0b1111, 0))
        mask = int(within.ask("non-blocking", WHAT_WAS_THERE, ROUNDS, MS).split()[2], 16)
        self.assertEqual(mask, 0b11)

    def test_who_has_them_in_common_needs_no_grant(self):
        """There are more programs than SMs, so one is granted none. It gets on all the same, without a daemon too."""
        self.start_beside("true", "active")
        self.gpuctl("set", "batch", "max=2")
        for _ in range(2):
            self.start_bench("batch", "work", "--blocks", 64, "--iterations", 20, "--seconds", 60)
        instance.wait_until(lambda: self.usage("batch", self.program.pid)["granted"] == 0, "a grant of none")
        self.daemon.kill()
        wrong, in_order, mask = self.program.ask("non-blocking", WHAT_WAS_THERE, ROUNDS, MS).split()
        self.assertEqual((wrong, in_order, int(mask, 16).bit_count()), ("0", "True", 2))

    def test_two_programs_have_what_it_leaves_in_common(self):
        self.start_beside("true", "strict")
        second = self.start_launcher("other", PROGRAM)
        mask, block_tasks = self.launch_beside(second)
        self.assertEqual((mask.bit_count(), block_tasks), (instance.SMS - RESERVE, 0))
        self.assertTrue(self.explains("mode common", "on 4 SMs in common"))
        # Where one of them weighs more, each has SMs of its own again.
        self.gpuctl("set", "other", "weight=300")
        instance.wait_until(lambda: self.launch()[1] > 0, "rewritten kernels")
        self.assertFalse(self.explains("mode common"))

    def test_original_kernels_have_all_in_common_while_it_is_lent(self):
        self.start_beside("true", "active", OPAQUE)
        self.start_idle_in("ls")
        second = self.start_launcher("other", OPAQUE)
        instance.wait_until(lambda: self.explains("mode lent", "on 8 SMs in common"), "it to be lent")
        self.assertEqual(self.launch_beside(second)[0].bit_count(), instance.SMS)

    def launch_beside(self, program):
        """launch(), while the other program has work, which does not end."""
        self.assertEqual(program.ask("hold"), "held")
        instance.wait_until(lambda: self.usage("other", program.pid)["demand"] > 0, "its demand")
        return self.launch()

    def explains(self, *what):
        said = self.gpuctl("explain", self.program.pid).stdout
        return all(one in said for one in what)

    def test_an_active_reserve_only_while_it_is_kept(self):
        self.start_beside("true", "active")
        self.assertEqual(self.launch()[1], 0)  # nothing is in force: the slice with the reserve has no program
        other = self.start_idle_in("ls")
        instance.wait_until(lambda: self.launch()[1] > 0, "rewritten kernels while the reserve is lent")
        other.kill()
        busy = self.start_bench("ls", "work", "--blocks", RESERVE, "--iterations", 20, "--seconds", 60)
        # What a rewritten kernel did may be counted a little later, but not three launches later.
        instance.wait_until(
            lambda: all(self.goes_by_parts(always_kept=False) for _ in range(3)), "original kernels while it is kept"
        )
        busy.stop()
        self.start_idle_in("ls")
        instance.wait_until(lambda: self.launch()[1] > 0, "rewritten kernels while it is lent again")

    def test_can_be_off(self):
        self.start_beside("false", "strict")
        instance.wait_until(lambda: self.launch()[1] > 0, "rewritten kernels")
        self.assertFalse(self.explains(BESIDE))


class InPairs(instance.SystemTest):
    """What a reserve leaves is used to the last pair of SMs. A program with clusters of more than two blocks uses whole
    groups, of four SMs here: 0, 1, 16 and 17, then 2, 3, 18 and 19, and so on."""

    warp_instruction_ns = 0
    SMS = 32
    RESERVE = 6
    BY_PAIRS, BY_GROUPS = 26, 24
    # What they have: all but the first group and a pair of the second, and all but the first two.
    PAIRS, GROUPS = 0xFFFCFFF0, 0xFFF0FFF0

    def start_beside(self, mode="strict", program=IN_CLUSTERS, **env):
        self.env["SOFTGPU_SMS"] = str(self.SMS)
        self.start_daemon(config="lab.latency_target_us = 1\n")
        self.gpuctl("create-slice", "ls", "--reserve", self.RESERVE, "--reserve-mode", mode)
        self.gpuctl("create-slice", "batch")
        self.program = self.start_script_in("batch", program, **env)

    def start_behind_a_proxy(self, function, after):
        self.start_beside(**self.env_of_refusal(function, after))

    def sms(self, cluster=0, program=None, nanoseconds=MS):
        """How many SMs launches ran on, whose results are right."""
        asked = program or self.program
        wrong, in_order, mask = asked.ask("non-blocking", WHAT_WAS_THERE, ROUNDS, nanoseconds, cluster).split()
        self.assertEqual((wrong, in_order), ("0", "True"))
        return int(mask, 16).bit_count()

    def which(self, cluster=0, program=None):
        """The same SMs, as a mask."""
        watch = watch_sms(self)
        count = self.sms(cluster, program, 20 * MS)
        mask = seen_by(watch)[0][(program or self.program).pid]
        self.assertEqual(mask.bit_count(), count)
        return mask

    def test_beside_a_strict_reserve(self):
        self.start_beside()
        self.assertEqual(self.sms(), self.BY_PAIRS)
        said = f"on {self.BY_PAIRS} (a green context)"
        instance.wait_until(lambda: said in self.gpuctl("explain", self.program.pid).stdout, "it to be said")

    def test_beside_an_active_reserve(self):
        self.start_beside("active")
        self.start_bench("ls", "work", "--blocks", self.RESERVE, "--iterations", 20, "--seconds", 60)
        instance.wait_until(lambda: [self.sms() for _ in range(3)] == [self.BY_PAIRS] * 3, "all that it leaves")

    def test_below_a_max(self):
        self.start_beside("active")
        self.gpuctl("set", "batch", f"max={self.BY_PAIRS}")
        instance.wait_until(lambda: self.usage("batch", self.program.pid)["in_force"] == "max", "the max")
        self.assertEqual(self.sms(cluster=2), self.BY_PAIRS)
        self.assertEqual(self.sms(cluster=4), self.BY_GROUPS)

    def test_greater_clusters_make_it_groups_for_good(self):
        self.start_beside()
        for cluster, sms in ((0, self.BY_PAIRS), (2, self.BY_PAIRS), (4, self.BY_GROUPS), (2, self.BY_GROUPS)):
            self.assertEqual(self.sms(cluster), sms, f"clusters of {cluster}")
        self.assertEqual(self.sms(), self.BY_GROUPS)

    def test_leaves_the_reserve_groups_and_pairs_of_one(self):
        """A cluster finds room only on SMs that are near each other."""
        self.start_beside()
        self.assertEqual(self.which(), self.PAIRS)

    def test_another_program_may_go_by_groups_of_the_same_sms(self):
        self.start_beside()
        second = self.start_script_in("batch", IN_CLUSTERS)
        self.assertEqual(self.which(4, second), self.GROUPS)
        self.assertEqual(self.which(), self.PAIRS)

    def test_groups_keep_off_the_reserve_too(self):
        """The part begins in the middle of a group."""
        self.start_beside()
        self.gpuctl("set", "batch", "max=20")
        instance.wait_until(lambda: self.usage("batch", self.program.pid)["common_sms"] == 20, "the part")
        by_pairs = self.which()
        self.assertEqual((by_pairs.bit_count(), by_pairs & ~self.PAIRS), (20, 0))
        by_groups = self.which(4)
        self.assertEqual((by_groups.bit_count(), by_groups & ~by_pairs), (16, 0))

    def test_a_stream_whose_launches_go_on_moves_too(self):
        """It has launches in pairs when another stream has greater clusters."""
        self.start_beside()
        self.assertEqual(int(self.program.ask("go on"), 16).bit_count(), self.BY_GROUPS)

    def assert_groups_at_once(self, program):
        """Nobody waits for the driver to refuse the kernel."""
        trace = self.scratch / "trace"
        self.start_beside(program=program, GPUSLICE_DEBUG=str(trace))
        self.assertEqual(self.sms(), self.BY_GROUPS)
        self.assertIn("green context of SMs 8 to 32:", trace.read_text())
        self.assertNotIn("in pairs", trace.read_text())

    def test_so_do_clusters_of_the_kernels_own(self):
        self.assert_groups_at_once(OF_FOUR)

    def test_so_do_those_of_a_kernel_of_a_library(self):
        self.assert_groups_at_once(OF_A_LIBRARY)

    def test_so_do_those_of_its_function(self):
        self.assert_groups_at_once(ITS_FUNCTION)

    def assert_groups_for_a_while(self):
        """What the driver refuses once, it may take later."""
        self.assertEqual(self.sms(), self.BY_GROUPS)
        instance.wait_until(lambda: self.sms() == self.BY_PAIRS, "pairs again")

    def test_a_launch_that_the_driver_refuses_there_makes_it_groups_for_a_while(self):
        self.start_behind_a_proxy("cuLaunchKernel", after=ROUNDS + 1)
        self.assertEqual(self.sms(), self.BY_PAIRS)
        self.assert_groups_for_a_while()

    def test_a_driver_that_does_not_divide_into_pairs(self):
        self.start_behind_a_proxy("cuDevSmResourceSplitByCount", after=2)  # into groups first
        self.assert_groups_for_a_while()

    def test_a_driver_that_makes_no_part_of_them(self):
        self.start_behind_a_proxy("cuGreenCtxCreate", after=1)
        self.assert_groups_for_a_while()

    def test_a_driver_that_makes_no_stream_of_a_part(self):
        self.start_behind_a_proxy("cuGreenCtxStreamCreate", after=1)
        self.assert_groups_for_a_while()


if __name__ == "__main__":
    instance.main()
