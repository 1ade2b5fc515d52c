"""The state of the machine that a configuration needs: a private MPS or none, a private gpuctld with two slices, and
the programs, started and ended.

It uses the lab of the measurements and of the compatibility suite.
"""

import contextlib
import json
import pathlib
import subprocess
import time

from ..lab.modes import SOFTWARE, LabOfModes
from .configurations import OURS, RESERVE, OfSms

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

READY_S = 180  # PyTorch starts slowly, several of it at once more so
END_S = 15
LATE_S = 90  # after the end of a round: a last request may have waited for all of batch
LEAD_S = 0.1  # from the word to all programs to the beginning
DAEMON_LIMIT_S = 7200
# Settings of a slice as they are without an option of create-slice.
UNSET = {"priority": 0, "reserve": 0, "max": "unlimited", "weight": 100, "latency": "none"}
USAGE = ("launches", "block_tasks", "evictions", "evict_us_mean", "time_slice", "time_slice_us")


class Refused(Exception):
    """gpuctl does not know a setting of the configuration."""


class Member:
    """A program of a cell. It prints READY, then a line of JSON for each round."""

    def __init__(self, program):
        self.program = program
        self.lines_seen = 0

    def next_line(self, deadline):
        """The next line that the program prints; skips lines that are no part of the protocol."""
        while True:
            lines = self.program.out().split("\n")[:-1]
            while self.lines_seen < len(lines):
                line = lines[self.lines_seen]
                self.lines_seen += 1
                if line == "READY" or line.startswith("{"):
                    return line
            if self.program.process.poll() is not None:
                raise self.program.failure(f"ended with status {self.program.process.returncode}")
            if time.monotonic() > deadline:
                raise self.program.failure("does not answer in time")
            time.sleep(0.005)

    def say(self, line):
        try:
            self.program.process.stdin.write(line.encode() + b"\n")
            self.program.process.stdin.flush()
        except BrokenPipeError:
            raise self.program.failure("has ended") from None


class Stage:
    def __init__(self, build, scratch, software):
        self.lab = LabOfModes(build, scratch, scratch, software)
        self.software = software
        self.mode = None
        self.modes = contextlib.ExitStack()
        kernels = "corun-kernels-shared" if software else "corun-kernels"
        self.corun_kernels = self.lab.build / "bench" / kernels

    def enter_mode(self, mode):
        """Changes the mode if it differs; one MPS serves several configurations."""
        mode = SOFTWARE if self.software else mode
        if mode != self.mode:
            self.leave_mode()
            self.modes.enter_context(self.lab.mode(mode))
            self.mode = mode

    def leave_mode(self):
        self.mode = None
        self.modes.close()

    def close(self):
        self.lab.leave()
        self.leave_mode()

    def calibrate(self, sizes, limit_s=60):
        done = subprocess.run(
            [self.corun_kernels, "calibrate", *map(str, sizes)],
            env=self.lab.env,
            capture_output=True,
            text=True,
            timeout=limit_s,
        )
        if done.returncode != 0:
            raise RuntimeError(f"calibrate {' '.join(map(str, sizes))}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def slice_options(self, options, reserve):
        """The options with the reserve, and other parts of the GPU, in SMs of this one."""
        sms = self.lab.sms()

        def in_sms(option):
            part = reserve if option == RESERVE else option.part if isinstance(option, OfSms) else None
            return option if part is None else max(1, round(part * sms))

        return [in_sms(option) for option in options]

    def create_slice(self, name, options):
        command = [self.lab.gpuctl_path, "create-slice", name, *map(str, options)]
        done = subprocess.run(command, env=self.lab.env, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise Refused(
                f"gpuctl create-slice {name} {' '.join(map(str, options))}: "
                f"{(done.stderr.strip().splitlines() or ['no reason'])[-1]}"
            )

    @contextlib.contextmanager
    def configured(self, configuration, reserve):
        """The names of the slices for LS and batch; None for one that runs outside of gpuctl."""
        self.enter_mode(configuration.mode)
        if configuration.kind != OURS:
            yield None, None
            return
        config = "".join(f"{line}\n" for line in configuration.daemon)
        with self.lab.gpuctld(config=config, limit_s=DAEMON_LIMIT_S):
            for name, options in (("ls", configuration.ls_slice), ("batch", configuration.batch_slice)):
                self.create_slice(name, self.slice_options(options, reserve))
            if configuration.policy:
                self.lab.gpuctl("set", "/", f"policy={configuration.policy}")
            yield tuple(None if name in configuration.plain else name for name in ("ls", "batch"))

    def change(self, configuration, reserve, among):
        """Leads the slices from one of some configurations to another by their settings."""
        for name in ("ls", "batch"):
            settings = {key: UNSET[key] for each in among for key in each.settings(name) if key in UNSET}
            settings |= configuration.settings(name)
            settings.pop("isolation", None)
            if settings:
                values = self.slice_options(settings.values(), reserve)
                self.lab.gpuctl("set", name, *(f"{key}={value}" for key, value in zip(settings, values)))

    def usage(self):
        """What the daemon reports of the programs in slices, since their start; empty without a daemon."""
        if not self.lab.connection:
            return {}
        found = {}
        for name in ("ls", "batch"):
            of_slice = self.lab.call("GetSlice", path=name)
            settings = of_slice["slice"]
            isolation = {"isolation": settings.get("effective_isolation", settings["isolation"])}
            found[name] = [
                {key: client["usage"][0][key] for key in USAGE} | isolation
                for client in of_slice["clients"]
                if client["usage"]
            ]
        return found

    @contextlib.contextmanager
    def programs(self, wanted, limit_s):
        """Starts all programs at once and waits until they are ready. `wanted`: (slice, environment, command)
        of each.
        """
        members = []
        try:
            for slice_path, environment, command in wanted:
                with self.lab.environment(**dict(environment)):
                    members.append(Member(self.lab.start(slice_path, *command, limit_s=max(30, round(limit_s)))))
            deadline = time.monotonic() + min(READY_S, limit_s)
            for member in members:
                member.next_line(deadline)
            yield members
        finally:
            self.end(members)

    def end(self, members):
        """Ends programs in an orderly way if possible: under MPS a client that is killed may take others with it."""
        for member in members:
            with contextlib.suppress(OSError):
                member.program.process.stdin.close()
        deadline = time.monotonic() + END_S
        for member in members:
            try:
                member.program.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                member.program.kill()
            self.lab.programs.remove(member.program)
        if self.lab.mps and any(member.program.process.returncode != 0 for member in members):
            self.lab.mps.mend()

    @staticmethod
    def play(members, settle_s, seconds, seed):
        """Plays one round; returns what each member reports."""
        start = time.monotonic_ns() + round(LEAD_S * 1e9)
        for number, member in enumerate(members):
            member.say(f"GO {start} {settle_s} {seconds} {seed + number}")
        deadline = time.monotonic() + LEAD_S + settle_s + seconds + LATE_S
        return [json.loads(member.next_line(deadline)) for member in members]
