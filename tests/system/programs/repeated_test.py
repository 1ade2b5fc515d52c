"""A launch that repeats an earlier one, with nothing but launches in between, goes by what is set when it is made."""

from tests.system.harness import instance
from tests.system.sharing.opaque_test import MS, PROGRAM

LONG_MS, LAUNCHES = 30, 4  # each takes eight times that on four SMs
# "launch WORD MS": launches into one stream, which say on which SMs they ran in a word of their own. "seen": these.
REPEATING = PROGRAM.replace(
    "for line in sys.stdin:\n",
    f"""words, lasting = [memory(2) for _ in range(8)], stream("non-blocking")
for word in words: call("cuMemsetD32_v2", word, 0, SIZE(2))
for line in sys.stdin:
    if line.startswith("launch"):
        seen = words[int(line.split()[1])]
        for number in range({LAUNCHES}): append(lasting, number, int(line.split()[2]) * {MS})
        print("launched", flush=True)
        continue
    if line == "seen\\n":
        call("cuStreamSynchronize", lasting)
        masks = (ctypes.c_uint64 * len(words))()
        for at, word in enumerate(words): call("cuMemcpyDtoH_v2", ctypes.byref(masks, 8 * at), word, SIZE(8))
        print(*(bin(mask).count("1") for mask in masks), flush=True)
        continue
""",
    1,
)


class Repeated(instance.SystemTest):
    warp_instruction_ns = 0

    def test_a_limit_that_changes_between_two_launches_holds_for_the_second(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", 4)
        program = self.start_script_in("s", REPEATING)
        limits = (4, 6, 2, 4)
        for word, most in enumerate(limits):
            self.call("SetSlice", path="s", settings={"max": most})
            instance.wait_until(
                lambda: (self.usage("s", program.pid) or {"granted": most})["granted"] == most, "the grant"
            )
            self.assertEqual(program.ask("launch", word, LONG_MS), "launched")
        self.assertEqual(program.ask("seen"), " ".join(map(str, (*limits, 0, 0, 0, 0))))

    def test_so_does_one_that_goes_and_comes_back(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", 4)
        program = self.start_script_in("s", REPEATING)
        limits = (4, None, 4)
        for word, most in enumerate(limits):
            self.gpuctl("set", "s", f"max={most or 'none'}")
            granted = most or instance.SMS
            instance.wait_until(
                lambda: (self.usage("s", program.pid) or {"granted": granted})["granted"] == granted, "the grant"
            )
            self.assertEqual(program.ask("launch", word, 1), "launched")
        self.assertEqual(program.ask("seen"), f"4 {instance.SMS} 4 0 0 0 0 0")


if __name__ == "__main__":
    instance.main()
