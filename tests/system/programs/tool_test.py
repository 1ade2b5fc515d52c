"""A tool that was put into the programs, such as a profiler or a sanitizer, sees what it sees without gpuctl: what a
program becomes, and kernels in the form in which the program brought them.
"""

import sys

from tests.system.harness import instance
from tests.system.programs import unmanaged_test

TOOL = instance.DRIVER_PROGRAMS / "tool.so"
PRINTS = "import os; print(os.environ.get('SEEN_BY_TOOL'))"
WAYS = {
    "execv": "os.execv(path, words)",
    "execve": "os.execve(path, words, dict(os.environ))",
    "subprocess": "subprocess.run(words, check=True)",
}


class Tool(instance.SystemTest):
    def start_with_tool(self, *command):
        return self.start_in("s", *command, env={**self.env, "LD_PRELOAD": str(TOOL)})

    def test_it_sees_what_a_program_becomes(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        for way, code in WAYS.items():
            with self.subTest(way):
                words = [sys.executable, "-c", PRINTS]
                setting = f"import os, subprocess; path, words = {sys.executable!r}, {words!r}; {code}"
                program = self.start_with_tool(sys.executable, "-c", setting)
                self.assertEqual(program.wait(), 0, program.err())
                self.assertEqual(program.out(), "1\n")

    def test_around_gpuctl_run(self):
        """What gpuctl run leaves beside a program would be a process that the tool did not see begin."""
        self.start_daemon()
        self.gpuctl("create-slice", "s")
        waiting = "import time; print('ready', flush=True); time.sleep(600)"
        program = self.start_with_tool(sys.executable, "-c", waiting)
        instance.wait_until(lambda: "ready" in program.out(), "the program")
        self.assertEqual(unmanaged_test.watchers(program), [])

    def test_kernels_keep_their_form(self):
        self.start_daemon(config=instance.ALL_SHORT)
        self.gpuctl("create-slice", "s", "--max", 2)
        for start, has_form in ((self.start_in, True), (self.start_with_tool, False)):
            arguments = ("s",) if has_form else ()
            with self.subTest(has_form=has_form):
                program = start(*arguments, instance.BUILD / "tests/random/random-kernels", "0:1", "--linger")
                instance.wait_until(lambda of=program: "done" in of.err(), "the program to have run its kernels")
                kernels = self.gpuctl_json("explain", program.pid)["kernels"]
                self.assertTrue(kernels)
                for kernel in kernels:
                    reason = "a tool in the program, such as a profiler, has to see its kernels as they are"
                    self.assertEqual(reason in kernel["reason"], not has_form, kernel)
                    self.assertEqual(kernel["form"] == "opaque", not has_form, kernel)
                program.kill()


if __name__ == "__main__":
    instance.main()
