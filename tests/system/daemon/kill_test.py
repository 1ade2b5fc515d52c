"""gpuctl kill: programs end, by pid and by slice, what they had is free at once, and nobody beside them notices."""

import os
import signal
import stat
import subprocess
import sys
import time

from tests.system.harness import instance, pretended_mps
from tests.system.harness.slice_shell import LONG, SliceShell

IN_SLICE = (instance.GPUCTL, "run", "--slice")
IGNORING_TERM = ("sh", "-c", 'trap "" TERM; exec "$@"', "sh")


class Harness(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.pipes = self.scratch / "mps"
        self.pipes.mkdir()
        self.env["CUDA_MPS_PIPE_DIRECTORY"] = str(self.pipes)

    def busy(self, slice_path, prefix=()):
        """A program with default dispositions in the middle of a kernel of 10 s."""
        shell = SliceShell(self, (*prefix, *IN_SLICE, slice_path))
        shell.do("init")
        shell.do("launch", 0, *LONG)
        instance.wait_until(
            lambda: (self.usage(slice_path, shell.pid) or {}).get("holding", 0) > 0, "its kernel to run"
        )
        return shell

    def slices(self, *paths):
        for path in paths:
            self.gpuctl("create-slice", path)


class TimedKill(Harness):
    """The daemon gives MPS 2 s to answer."""

    def test_the_grant_is_a_neighbours_within_100_ms(self):
        self.start_daemon()
        self.slices("a", "b")
        neighbour = self.busy("b")
        delays = []
        for _ in range(3):
            victim = self.busy("a")
            instance.wait_until(lambda: self.usage("b", neighbour.pid)["granted"] < instance.SMS, "SMs to be shared")
            start = time.monotonic()
            ended = self.call("Kill", pid=victim.pid)["clients"]
            instance.wait_until(
                lambda: self.usage("b", neighbour.pid)["granted"] == instance.SMS,
                "the grant to come back",
                interval=0.001,
            )
            delays.append(time.monotonic() - start)
            self.assertEqual(
                [(c["pid"], c["signals"], c["mps"], c["ended"]) for c in ended],
                [(victim.pid, ["SIGTERM"], "not active", True)],
            )
            self.assertEqual(victim.process.wait(), -signal.SIGTERM)
        print("grant back after", ", ".join(f"{delay * 1000:.1f}" for delay in delays), "ms", file=sys.stderr)
        self.assertLess(min(delays), 0.1 * instance.SLOWER)
        neighbour.finish(0)  # each of its blocks has run once

    def pretend_mps(self, answer):
        """An MPS that lists the process in the file `client`; `answer` is what terminate_client does."""
        pretended_mps.start(self, self.pipes)
        tools = self.scratch / "tools"
        tools.mkdir()
        control = tools / "nvidia-cuda-mps-control"
        control.write_text(f"""#!/bin/sh
cd "$CUDA_MPS_PIPE_DIRECTORY"
read -r verb server client
echo "$verb $server $client" >> asked
case $verb in
  get_server_list) echo 77 ;;
  get_client_list) cat client ;;
  terminate_client) {answer} ;;
esac
""")
        control.chmod(control.stat().st_mode | stat.S_IXUSR)
        self.env["PATH"] = f"{tools}:{self.env['PATH']}"

    def test_under_mps_the_work_is_terminated_before_the_signal(self):
        # Had the signal been sent already, the program would be gone 300 ms later.
        self.pretend_mps('sleep 0.3; kill -0 "$client" && echo "$client" > lived; : > client')
        self.start_daemon()
        self.slices("a", "b")
        neighbour, victim = self.busy("b"), self.busy("a")
        (self.pipes / "client").write_text(f"{victim.pid}\n")
        done = self.gpuctl("kill", victim.pid)
        self.assertIn("ended after SIGTERM; its work on the GPU was terminated before", done.stdout)
        self.assertEqual(victim.process.wait(), -signal.SIGTERM)
        self.assertEqual((self.pipes / "lived").read_text(), f"{victim.pid}\n")
        self.assertEqual(
            [line.split() for line in (self.pipes / "asked").read_text().splitlines()],
            [
                ["get_server_list"],
                ["get_client_list", "77"],
                ["terminate_client", "77", str(victim.pid)],
                ["get_client_list", "77"],
            ],
        )
        neighbour.finish(0)

    def test_an_mps_that_hangs_holds_nobody_up(self):
        self.pretend_mps("sleep 600")
        self.start_daemon()
        self.slices("a")
        victim = self.busy("a")
        (self.pipes / "client").write_text(f"{victim.pid}\n")
        killing = subprocess.Popen(
            [instance.GPUCTL, "kill", str(victim.pid)], env=self.env, stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(killing.communicate)
        instance.wait_until(
            lambda: (
                "terminate_client" in (self.pipes / "asked").read_text() if (self.pipes / "asked").exists() else False
            ),
            "MPS to be asked",
        )
        self.assertEqual(len(self.clients("a")), 1)  # the daemon answers
        self.assertEqual(victim.process.wait(instance.PATIENCE_S), -signal.SIGTERM)
        killing.wait(instance.PATIENCE_S)
        self.assertIn("did not answer within 2000 ms); going on with SIGTERM", self.daemon.err())


class Kill(Harness):
    def test_a_slice_is_ended_with_what_is_below_it(self):
        self.start_daemon()
        self.slices("a", "a/x", "b")
        inside, below, beside = self.busy("a"), self.busy("a/x"), self.busy("b")
        done = self.gpuctl("kill", "a")
        self.assertEqual(
            sorted(line.split()[0] for line in done.stdout.splitlines()),
            sorted(str(shell.pid) for shell in (inside, below)),
        )
        self.assertIn("ended after SIGTERM", done.stdout)
        for shell in (inside, below):
            self.assertEqual(shell.process.wait(), -signal.SIGTERM)
        beside.finish(0)
        self.assertEqual(self.gpuctl("kill", "a").stdout, "no programs are in slice a\n")

    def test_who_ignores_the_signal_is_killed_after_the_timeout(self):
        self.start_daemon()
        self.slices("a", "b")
        neighbour, stubborn = self.busy("b"), self.busy("a", IGNORING_TERM)
        start = time.monotonic()
        done = self.gpuctl("kill", stubborn.pid, "--timeout", 300)
        self.assertGreaterEqual(time.monotonic() - start, 0.3)
        self.assertIn("ended after SIGTERM and SIGKILL", done.stdout)
        self.assertEqual(stubborn.process.wait(), -signal.SIGKILL)
        instance.wait_until(lambda: self.usage("b", neighbour.pid)["granted"] == instance.SMS, "the grant to come back")
        self.assertIn("still there 300 ms after SIGTERM: it is killed", self.daemon.err())

    def test_a_program_with_a_handler_ends_by_it(self):
        self.start_daemon()
        self.slices("a")
        bench = self.start_bench("a", "work", "--blocks", 512, "--iterations", 10, "--count", 1000000, "--announce")
        bench.wait_started()
        done = self.gpuctl("kill", bench.pid, "--signal", "INT", "--timeout", 60000)
        self.assertIn("ended after SIGINT\n", done.stdout)
        self.assertRightResults(bench.report())

    def test_what_cannot_be_is_one_line(self):
        self.start_daemon()
        self.slices("a")
        for arguments, line in (
            (("1",), "process 1 is not attached to a slice"),
            (("nowhere",), "slice 'nowhere' does not exist"),
            (("a", "--signal", "STOP"), "signal: must be TERM, HUP, "),
        ):
            done = self.gpuctl("kill", *arguments, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertTrue(done.stderr.startswith(f"gpuctl: {line}"), done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)

    def test_others_may_not(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to become somebody else")
        os.chmod(self.scratch, 0o755)
        self.start_daemon(
            config=instance.ALWAYS_REWRITTEN + 'daemon.socket_mode = "0666"\n[slice.theirs]\nowner_uid = 65534\n'
        )
        self.slices("ours")
        ours, theirs = self.busy("ours"), self.busy("theirs")

        def as_nobody(**parameters):
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                self.daemon.process.poll = lambda: None  # it is not this process's child
                try:
                    self.call("Kill", **parameters)
                    os.write(write, b"done")
                except AssertionError as refused:
                    os.write(write, str(refused).encode())
                os._exit(0)
            os.close(write)
            os.waitpid(child, 0)
            with os.fdopen(read) as said:
                return said.read()

        for parameters in ({"pid": ours.pid}, {"slice": "/"}):
            self.assertIn("PermissionDenied", as_nobody(**parameters))
        self.assertEqual(as_nobody(slice="theirs"), "done")
        self.assertEqual(theirs.process.wait(), -signal.SIGTERM)
        ours.finish(0)


if __name__ == "__main__":
    instance.main()
