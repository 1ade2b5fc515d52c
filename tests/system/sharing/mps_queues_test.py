"""Under MPS the daemon hands out hardware queues: programs that start at once see each other, and all of them start.

A process that looks like MPS's control daemon makes gpuctld take the software GPU for one that is shared under MPS. The
software GPU has as many queues in all as were measured on an H100, and gives a program what its environment asks for.
"""

import re
import sys

from tests.system.harness import instance, pretended_mps

IN_ALL = 120
TO_START = 40
MORE, USUAL = 4, 2
# The daemon promises 72 queues to those who need more than MPS makes by itself.
WITH_MORE = 18
VARIABLE = "CUDA_DEVICE_MAX_CONNECTIONS"
# It says how cuInit ended, and what the variable is afterwards, for itself and for its children; then it stays.
PROGRAM = f"""
import ctypes, subprocess, sys
cuda, libc = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
status = cuda.cuInit(0)
child = subprocess.run(["printenv", "{VARIABLE}"], capture_output=True)
print(status, libc.getenv(b"{VARIABLE}"), child.stdout, flush=True)
sys.stdin.readline()
"""
UNAVAILABLE = "46"
STARTED = "0 None b''"


class MpsQueues(instance.SystemTest):
    def setUp(self):
        super().setUp()
        pretended_mps.start_with_queues(self, IN_ALL)

    def start_program(self, **env):
        env = {"GPUSLICE_DEBUG": str(self.scratch / f"debug-{len(self.started)}"), **env}
        self.started.append(self.start_script_in("s", PROGRAM, says=None, **env))
        return self.started[-1]

    def start_many(self, count, **env):
        """All at once; the first lines of all."""
        self.started = []
        for _ in range(count):
            self.start_program(**env)
        return [program.answer("its start") for program in self.started]

    def start_in_turn(self, count):
        self.started = []
        self.assertEqual([self.start_program().answer("its start") for _ in range(count)], [STARTED] * count)

    def queues_of_all(self):
        """By program. One that had no answer in time has what MPS gives."""
        said = [(self.scratch / f"debug-{number}").read_text() for number in range(len(self.started))]
        found = [re.search(r"this program has (\d+) hardware queues", text) for text in said]
        return [int(line[1]) if line else USUAL for line in found]

    def test_forty_that_start_at_once(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        self.assertEqual(self.start_many(TO_START), [STARTED] * TO_START)
        queues = self.queues_of_all()
        self.assertLessEqual(queues.count(MORE), WITH_MORE)
        self.assertEqual(queues.count(MORE) + queues.count(USUAL), TO_START)
        self.assertLessEqual(sum(queues), IN_ALL)
        print(f"{queues.count(MORE)} have {MORE} queues, {queues.count(USUAL)} have {USUAL}", file=sys.stderr)

    def test_queues_come_back(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        for _ in range(2):
            self.start_in_turn(WITH_MORE + 1)
            self.assertEqual(self.queues_of_all(), [MORE] * WITH_MORE + [USUAL])
            for program in self.started:
                program.end()
            instance.wait_until(lambda: not self.clients("s"), "all to be gone")
            for path in self.scratch.glob("debug-*"):
                path.unlink()

    def test_a_number_of_its_own_stays(self):
        """Forty that ask for four each by themselves are more than there are queues for."""
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        said = self.start_many(TO_START, **{VARIABLE: str(MORE)})
        fit = IN_ALL // MORE
        left = rf"b'{MORE}' b'{MORE}\n'"
        self.assertEqual(sorted(said), [f"0 {left}"] * fit + [f"{UNAVAILABLE} {left}"] * (TO_START - fit))

    def test_where_nothing_is_in_force_mps_gives_what_it_gives(self):
        self.start_daemon(config="")
        self.gpuctl("create-slice", "s")
        self.start_in_turn(2)
        self.assertEqual(self.queues_of_all(), [USUAL] * 2)

    def test_the_next_daemon_hears_of_it(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        self.start_in_turn(WITH_MORE)
        before = self.started
        self.daemon.kill()
        self.start_daemon()
        instance.wait_until(lambda: len(self.clients("s")) == WITH_MORE, "all to come back")
        (self.scratch / "debug-0").unlink()
        self.start_in_turn(1)
        self.assertEqual((len(before), self.queues_of_all()), (WITH_MORE, [USUAL]))

    def test_a_child_forked_after_the_question_attaches_by_itself(self):
        """With its parent's connection it would be its parent to the daemon, or nobody."""
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        command = [instance.GPUCTL, "run", "--slice", "s", instance.DRIVER_PROGRAMS / "fork_in_init"]
        trace = self.scratch / "trace"
        both = instance.Conversation(self, command, {**self.env_of_others(), "GPUSLICE_DEBUG": str(trace)})
        said = [both.answer("a start").split(": ") for _ in range(2)]
        self.assertEqual([result for _, result in said], ["0", "0"])
        pids = {int(pid) for pid, _ in said}
        instance.wait_until(lambda: {client["pid"] for client in self.clients("s")} == pids, "both to be clients")
        self.assertNotIn("gpuctld: io.gpuctl", trace.read_text(), "the daemon refused something")

    def test_a_program_that_finds_no_daemon(self):
        """What the driver makes under MPS, and no promise."""
        library = instance.BUILD / "src/libgpuslice/libgpuslice.so"
        env = {**self.env_of_others(), "GPUCTL_SLICE": "s", "LD_LIBRARY_PATH": str(instance.SOFTGPU)}
        env["LD_PRELOAD"] = ":".join(filter(None, (env.get("LD_PRELOAD"), str(library))))
        alone = instance.Conversation(self, [sys.executable, "-c", PROGRAM], env)
        self.assertEqual(alone.answer("its start"), STARTED)


if __name__ == "__main__":
    instance.main()
