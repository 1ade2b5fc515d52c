"""gpuctl top on a terminal: what it draws, that it follows the terminal's size, and that it leaves it as it was."""

import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from tests.system.harness import instance

WORKLOAD = pathlib.Path(__file__).resolve().parents[2] / "workloads/effisha-group.toml"
ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"  # the alternate screen


class Screen:
    """A pseudo-terminal with gpuctl on it, by default its verb top. `text` is all that it has drawn so far."""

    def __init__(self, test, columns=100, lines=30, kind="xterm", verb=("top", "--interval", "0.1")):
        self.main, self.terminal = pty.openpty()
        test.addCleanup(os.close, self.main)
        test.addCleanup(os.close, self.terminal)
        self.resize(columns, lines)
        self.before = termios.tcgetattr(self.terminal)
        self.text = ""
        self.process = subprocess.Popen(
            [instance.GPUCTL, *verb],
            env={**test.env, "TERM": kind, "LC_ALL": "C.UTF-8"},
            stdin=self.terminal,
            stdout=self.terminal,
            stderr=self.terminal,
            start_new_session=True,  # without a controlling terminal, which would be hung up at its end
        )
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)

    def resize(self, columns, lines):
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self):
        while select.select([self.main], [], [], 0)[0]:
            self.text += os.read(self.main, 65536).decode(errors="replace")

    def wait_for(self, condition, what):
        """Until condition(text)."""

        def holds():
            self.read()
            return condition(self.text)

        return instance.wait_until(holds, f"{what}; drawn so far: {self.text[-2000:]!r}")

    def forget(self):
        self.read()
        self.text = ""

    def type(self, keys):
        os.write(self.main, keys.encode())

    def end(self):
        """The exit status, once all it wrote was read."""
        deadline = time.monotonic() + instance.PATIENCE_S
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read()
            time.sleep(0.01)
        self.read()
        return self.process.poll()


def widest(text):
    """The longest line that stands in a piece of what was drawn, without what moves the cursor or colours."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    return max((len(line) for line in re.split(r"[\r\n]+", plain)), default=0)


class Top(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.start_daemon()
        self.gpuctl("create-slice", "serving", "--reserve", 2)

    def test_it_shows_programs_and_quits(self):
        screen = Screen(self)
        screen.wait_for(lambda text: ENTER in text and "q quits" in text, "the first screen")
        program = self.start_in("serving", instance.BUILD / "tests/random/random-kernels", "0:1", "--linger")
        screen.wait_for(lambda text: str(program.pid) in text and "serving" in text, "the program to be shown")
        screen.type("q")
        self.assertEqual(screen.end(), 0)
        self.assertTrue(screen.text.endswith(LEAVE), screen.text[-200:])
        self.assertEqual(termios.tcgetattr(screen.terminal), screen.before)

    def test_a_terminal_without_a_cursor_gets_one_table(self):
        for kind in ("dumb", ""):
            with self.subTest(kind):
                screen = Screen(self, kind=kind)
                self.assertEqual(screen.end(), 0)
                self.assertIn("serving", screen.text)
                self.assertNotIn("\x1b", screen.text)

    def test_what_show_prints_of_programs_fits_the_terminal(self):
        verb = ("show", "serving")
        self.start_idle_in("serving")
        self.assertGreater(max(map(len, self.gpuctl(*verb).stdout.splitlines())), 120, "in a pipe all is there")
        for columns in (80, 200):
            screen = Screen(self, columns=columns, verb=verb)
            self.assertEqual(screen.end(), 0)
            lines = screen.text.split("\r\n")
            titles, row = lines[next(i for i, line in enumerate(lines) if line.lstrip().startswith("PID")) :][:2]
            self.assertLessEqual(max(len(titles), len(row)), columns)
            self.assertRegex(titles, "GRANTED.*COMMAND$")
            self.assertEqual("EVICT MEAN" in titles, columns > 80)

    def test_it_follows_the_size_of_the_terminal(self):
        screen = Screen(self, columns=140)
        screen.wait_for(lambda text: "q quits" in text, "the first screen")
        screen.forget()
        screen.resize(60, 12)
        os.kill(screen.process.pid, signal.SIGWINCH)
        screen.wait_for(lambda text: "\x1b[?2026h" in text and text.count("\x1b[?2026l") >= 3, "more screens")
        latest = screen.text[: screen.text.rindex("\x1b[?2026l")].rpartition("\x1b[?2026h")[2]
        self.assertLessEqual(widest(latest), 60, latest)

    def test_signals_leave_the_terminal_as_it_was(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number.name):
                screen = Screen(self)
                screen.wait_for(lambda text: "q quits" in text, "the first screen")
                os.kill(screen.process.pid, number)
                self.assertIsNotNone(screen.end())
                self.assertTrue(screen.text.endswith(LEAVE), screen.text[-200:])
                self.assertEqual(termios.tcgetattr(screen.terminal), screen.before)

    def test_it_waits_for_the_next_daemon(self):
        screen = Screen(self)
        screen.wait_for(lambda text: "q quits" in text, "the first screen")
        self.daemon.kill()
        screen.wait_for(lambda text: "gpuctl top: no daemon" in text, "it to be said")
        screen.forget()
        self.start_daemon()
        screen.wait_for(lambda text: re.search(r"gpuctl top: \d+ slice", text), "what the next one says")
        self.gpuctl("create-slice", "later")
        screen.wait_for(lambda text: "later" in text, "the new slice")
        self.daemon.kill()
        screen.forget()
        screen.wait_for(lambda text: "gpuctl top: no daemon" in text, "it to end too")
        screen.type("q")
        self.assertEqual(screen.end(), 0)
        self.assertTrue(screen.text.endswith(LEAVE), screen.text[-200:])
        self.assertEqual(termios.tcgetattr(screen.terminal), screen.before)

    def test_a_setting_and_an_end_from_within(self):
        program = self.start_in("serving", instance.BUILD / "tests/random/random-kernels", "0:1", "--linger")
        screen = Screen(self)
        screen.wait_for(lambda text: str(program.pid) in text, "the program to be shown")
        screen.type("\x1b[Bemax=4\r")
        instance.wait_until(lambda: self.call("GetSlice", path="serving")["slice"].get("max") == 4, "the setting")
        screen.wait_for(lambda text: "serving: max=4" in text, "it to be said")
        screen.type("eweight=0\r")
        screen.wait_for(lambda text: re.search(r"gpuctl top: weight: '0' is not", text), "why not")
        screen.type("k")
        screen.wait_for(lambda text: f"end program {program.pid}" in text, "the question")
        screen.type("n")
        screen.forget()
        screen.wait_for(lambda text: "? help" in text, "nothing to be asked any more")
        self.assertIsNone(program.process.poll())
        screen.type("ky")
        program.wait()
        screen.wait_for(lambda text: "1 program ended" in text, "it to be said")
        screen.type("q")
        self.assertEqual(screen.end(), 0)

    def test_it_is_stopped_and_goes_on(self):
        screen = Screen(self)
        screen.wait_for(lambda text: "q quits" in text, "the first screen")
        os.kill(screen.process.pid, signal.SIGTSTP)
        screen.wait_for(lambda text: text.endswith(LEAVE), "the terminal to be left")
        status = pathlib.Path(f"/proc/{screen.process.pid}/stat")
        instance.wait_until(lambda: status.read_text().rpartition(")")[2].split()[0] == "T", "it to be stopped")
        self.assertEqual(termios.tcgetattr(screen.terminal), screen.before)
        screen.forget()
        os.kill(screen.process.pid, signal.SIGCONT)
        screen.wait_for(lambda text: ENTER in text and "q quits" in text, "the screen again")
        screen.type("q")
        self.assertEqual(screen.end(), 0)
        self.assertEqual(termios.tcgetattr(screen.terminal), screen.before)

    def test_without_a_screen_it_prints_a_table_each_time(self):
        top = subprocess.Popen(
            [instance.GPUCTL, "top", "--batch", "--interval", "0.1"], env=self.env, stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(top.wait)
        self.addCleanup(top.kill)
        titles = [line for line, _ in zip((line for line in top.stdout if line.startswith("SLICE")), range(3))]
        self.assertEqual(len(titles), 3)
        top.stdout.close()

    def test_other_verbs_say_how_far_long_work_is_and_clear_the_line(self):
        record = self.scratch / "record.toml"
        for verb, said in (
            (("simulate", WORKLOAD, "--policy", "frs", "--seeds", "2"), "simulating frs: run 2 of 2"),
            (("rewrite", instance.CUDA_PROGRAMS / "vector_add.fatbin"), "rewriting: module 1 of 1"),
            (("monitor", "--record", record, "--seconds", "0.5"), "recording: 0 launches so far; Ctrl-C ends it"),
        ):
            with self.subTest(verb=verb[0]):
                screen = Screen(self, verb=verb)
                screen.end()
                self.assertRegex(screen.text, rf"{said}\r\x1b\[K[^\x1b]+$")
                self.assertNotIn(said, self.gpuctl(*verb, check=False).stderr)

    def test_without_a_daemon_it_is_an_error(self):
        self.daemon.kill()
        screen = Screen(self)
        self.assertEqual(screen.end(), 3)
        self.assertRegex(screen.text, r"^gpuctl: .+\r\n$")


if __name__ == "__main__":
    instance.main()
