"""Accidents befall the daemon and its clients; after each all is well: chaos_test.py.

chaos_test.py --minutes N --seed S goes on with accidents in random order for that long (scripts/chaos.sh). What holds
all the while: the daemon never grants more SMs than there are, no slice and no setting is lost, no program ends or
computes anything wrong, and after each accident every program launches again.
"""

import collections
import contextlib
import random
import resource
import signal
import statistics
import subprocess
import sys
import time

from tests.system.harness import endurance, instance, witness

STATE_BYTES = 256 * 1024
CROWD = 6  # programs that start at once
NOT_STARTED = 125  # gpuctl run could not start the program
SHORT_S = (0.05, 0.4)  # how long an accident lasts that ends by itself
BAD_CONFIG = "no_such_key = 1\n"
# What the test changes while programs run, and the values.
CHANGES = {
    "max": (3, 5, 8),
    "weight": (1, 10, 300),
    "priority": (-3, 0, 7),
    "quota": ("20ms/50ms", "none"),
    "memory_max": (4 << 30, 8 << 30),
    "memory_high": (1 << 29, 1 << 30),
    "latency": ("2ms", "1s", "none"),
}


class Chaos(endurance.Endurance):
    def test_after_each_accident_all_is_well(self):
        self.random = random.Random(self.seed)
        self.waits = collections.defaultdict(list)
        self.small_state()
        self.start_daemon()
        self.create_slices(endurance.SLICES)
        self.running = {path: self.start_client(path) for path in ("ls", "batch/a", "batch/b")}
        self.check("the start")
        watcher = endurance.Watcher(self.socket)
        watcher.start()
        seen = witness.Witness(self)
        seen.start()
        for accident in self.order():
            getattr(self, accident)()
            self.check(accident)
        watcher.stop()
        seen.stop()
        self.report(watcher)
        print(seen.says(), file=sys.stderr)
        seen.check()
        self.assertGreater(watcher.looks, 0)
        self.assertLessEqual(watcher.most, instance.SMS, "more SMs were granted than there are")
        for client in self.running.values():
            self.end_well(client)

    def order(self):
        accidents = [name for name in dir(self) if name.startswith("accident_")]
        if self.minutes is None:
            yield from accidents
            return
        until = time.monotonic() + 60 * self.minutes
        while time.monotonic() < until:
            yield self.random.choice(accidents)

    # What befalls whom.

    def accident_daemon_killed(self):
        self.daemon.kill()
        self.start_daemon()

    def accident_daemon_ended_and_started(self):
        self.daemon.process.terminate()
        self.assertEqual(self.daemon.wait(), 0, self.daemon.err())
        self.start_daemon()

    def accident_daemon_stopped(self):
        self.stop_for_a_while(self.daemon)

    def accident_daemon_without_descriptors(self):
        with self.limited(self.daemon, resource.RLIMIT_NOFILE, 0):
            crowd = self.start_crowd()
            self.sleep()
        self.end_crowd(crowd, may_be_refused=True)

    def accident_daemon_without_memory(self):
        used = self.daemon.kib("VmSize") * 1024
        with contextlib.suppress(ProcessLookupError), self.limited(self.daemon, resource.RLIMIT_AS, used):
            crowd = self.start_crowd()
            self.sleep()
        try:
            self.call("GetStatus")
        except AssertionError:  # it may end; the service manager starts it again
            self.daemon.wait()
            self.start_daemon()
        self.end_crowd(crowd, may_be_refused=True)

    def accident_disk_full(self):
        filler = self.state.parent / "filler"
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(b"x" * 4096):
                pass
        changed = self.change_a_setting(must=False)
        filler.unlink()
        if not changed:
            self.change_a_setting()
        instance.wait_until(
            lambda: not any("survive" in note for note in self.call("GetStatus")["notes"]), "the slices to be saved"
        )

    def accident_reload_of_a_bad_configuration(self):
        path = self.scratch / "gpuctl.toml"
        good = path.read_text()
        path.write_text(BAD_CONFIG)
        self.daemon.process.send_signal(signal.SIGHUP)
        instance.wait_until(lambda: "no_such_key" in self.daemon.err(), "the daemon to refuse it")
        path.write_text(good)
        self.daemon.process.send_signal(signal.SIGHUP)

    def accident_client_killed(self):
        path = self.random.choice(sorted(self.running))
        self.running[path].kill()
        self.running[path] = self.start_client(path)

    def accident_client_stopped(self):
        self.stop_for_a_while(self.random.choice(sorted(self.running.items()))[1])

    def accident_client_without_descriptors_while_the_daemon_is_killed(self):
        client = self.running[self.random.choice(sorted(self.running))]
        with self.limited(client, resource.RLIMIT_NOFILE, 0):
            self.accident_daemon_killed()
            self.sleep()

    def accident_many_at_once(self):
        self.end_crowd(self.start_crowd())

    def accident_settings_changed(self):
        self.change_a_setting()

    def accident_frozen_for_a_while(self):
        path = self.random.choice(("batch", "batch/a", "batch/b"))
        self.gpuctl("freeze", path)
        self.sleep()
        self.gpuctl("thaw", path)

    def accident_moved_there_and_back(self):
        pid = self.running["batch/b"].pid
        for path in ("batch/a", "batch/b"):
            self.gpuctl("move", pid, path)
            self.sleep()

    def accident_daemon_killed_while_a_slice_is_frozen(self):
        self.gpuctl("freeze", "batch/a")
        self.accident_daemon_killed()
        self.gpuctl("thaw", "batch/a")

    def accident_slice_comes_and_goes(self):
        self.guest_comes_and_goes("--reserve", 1, "--memory-min", "64M")

    def accident_isolated_slice_comes_and_goes(self):
        self.guest_comes_and_goes("--isolation", "isolated", "--latency", "2x", "--join", "group:0")

    def guest_comes_and_goes(self, *settings):
        self.gpuctl("create-slice", "guest", *settings)
        client = self.start_client("guest")
        client.wait_started()
        client.kill()
        instance.wait_until(lambda: not self.clients_of("guest"), "the guest to be gone")
        self.gpuctl("delete-slice", "guest")

    # How.

    def small_state(self):
        """A file system for the state file alone that can be full."""
        self.state = self.scratch / "small" / "state"
        self.state.parent.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={STATE_BYTES}", "tmpfs", self.state.parent]
        if subprocess.run(mount, capture_output=True).returncode != 0:
            print("skipped: accident_disk_full: needs a file system of its own, and mount refused", file=sys.stderr)
            self.accident_disk_full = lambda: None
            return
        # Before the scratch directory is removed, after all programs have ended.
        self.addCleanup(subprocess.run, ["umount", "--lazy", self.state.parent], check=True)
        self.addCleanup(self.end_all)

    def start_crowd(self):
        return [self.start_in("batch/a", instance.BENCH, "run", "vectorAdd", "--count", 3) for _ in range(CROWD)]

    def end_crowd(self, crowd, may_be_refused=False):
        for program in crowd:
            if program.wait() == NOT_STARTED and may_be_refused:
                self.assertRegex(program.err(), r"^gpuctl: [^\n]*(gpuctld|connect)[^\n]*\n$")  # one line says why
            elif may_be_refused and "CUDA_ERROR_OUT_OF_MEMORY" in program.err():
                pass  # its memory is limited, and nobody has more than the daemon can record
            else:
                self.assertEqual(program.wait(), 0, program.err() + program.out())

    def sleep(self):
        time.sleep(self.random.uniform(*SHORT_S))

    def stop_for_a_while(self, program):
        program.process.send_signal(signal.SIGSTOP)
        self.sleep()
        program.process.send_signal(signal.SIGCONT)

    @contextlib.contextmanager
    def limited(self, program, what, to):
        """Nothing more of a resource is to be had for a program."""
        before = resource.prlimit(program.pid, what, (to, resource.prlimit(program.pid, what)[1]))
        try:
            yield
        finally:
            resource.prlimit(program.pid, what, before)

    def change_a_setting(self, must=True):
        path = self.random.choice(("batch", "batch/a", "batch/b"))
        key = self.random.choice(sorted(CHANGES))
        value = self.random.choice(CHANGES[key])
        done = self.gpuctl("set", path, f"{key.replace('_', '-')}={value}", check=must)
        if done.returncode == 0:
            self.slices[path][key] = value
        return done.returncode == 0

    def clients_of(self, path):
        return self.call("GetSlice", path=path)["clients"]

    # What holds.

    def check(self, after):
        """All slices are there as they were set, all programs live, and each of them launches again."""
        began = time.monotonic()
        try:
            self.check_slices("after " + after)
        except AssertionError as failure:
            status = self.daemon.process.poll()
            raise AssertionError(
                f"{failure}; after {after}; gpuctld: {status}: {self.daemon.err()[-2000:]}"
            ) from failure
        for path, client in self.running.items():
            self.check_program(path, client, "after " + after)
        self.waits[after].append(time.monotonic() - began)

    def report(self, watcher):
        """Milliseconds until everything was seen to be well, looks included."""
        print(f"{watcher.looks} looks, at most {watcher.most} of {instance.SMS} SMs granted", file=sys.stderr)
        for name, waits in sorted(self.waits.items()):
            worst, median = 1000 * max(waits), 1000 * statistics.median(waits)
            kind = name.removeprefix("accident_").replace("_", " ")
            print(f"{kind}: {len(waits)}, well again after {median:.0f} ms, at worst {worst:.0f}", file=sys.stderr)


if __name__ == "__main__":
    endurance.main(Chaos)
