#!/usr/bin/env python3
"""What many connected clients cost the daemon: bench/crowd.py [--build build] [--clients 1000] [--seconds 10].

The clients speak the protocol and have pages, but no GPU; the daemon manages the software GPU. Printed: the daemon's
CPU time while nothing changes, with all clients idle and with some of them at work; how long a grant takes from its
decision until it is in the client's page, seen by a program that does nothing but look there; the daemon's CPU time for
each wake-up; and its memory. On a machine that does other work, only CPU times tell something of the daemon.
"""

import argparse
import array
import contextlib
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))

from bench.lab.client import Varlink, attach  # noqa: E402

# src/ipc/stub.h: where the first Grant and the first Usage begin, in words of 32 bits.
GRANT, USAGE = 64 // 4, (64 + 64 * 16) // 4
CAPSM, EPOCH, DECIDED_NS = GRANT, GRANT + 4, (GRANT + 6) // 2
DEMAND, HOLDING, APPLIED_EPOCH, OUTSTANDING = USAGE, USAGE + 1, USAGE + 2, USAGE + 3
MEMORY = USAGE // 2 + 30
SMS = 64  # the most that the software GPU has
SLICES = 20
TIMED = 16  # clients that have something to run while grants are timed
AT_WORK = 20  # while nothing changes, with an SM each: if they wanted more than there are, they would take turns
TURNS = 1000
PATIENCE_S = 60
SOON_NS = 500_000  # who is given a CPU so soon has hardly waited
NICE = -10  # of the daemon and of the program that looks: what systemd/gpuctld.service asks for
ONE = (1).to_bytes(8, "little")


def prefer(pid):
    """Where the kernel divides processors by sessions (autogroup), niceness counts only within one."""
    os.setpriority(os.PRIO_PROCESS, pid, NICE)
    with contextlib.suppress(OSError), open(f"/proc/{pid}/autogroup", "w", encoding="ascii") as file:
        file.write(str(NICE))


class Client:
    """A connection, a page and an eventfd."""

    def __init__(self, path, slice_path, uuid):
        self.connection = Varlink(path, PATIENCE_S)
        reply, page, self.kick_fd = attach(self.connection, slice=slice_path, device_uuids=[uuid], resumed=False)
        if "error" in reply:
            raise SystemExit(f"crowd.py: {reply}")
        view = memoryview(page)
        self.words, self.longs = view.cast("I"), view.cast("Q")
        self.longs[MEMORY] = 1 << 28

    def work(self, sms):
        """Has so much to run, and follows its grant."""
        self.words[DEMAND], self.words[OUTSTANDING] = sms, int(sms > 0)
        self.words[HOLDING] = min(self.words[HOLDING], sms)
        self.follow()

    def follow(self):
        self.words[APPLIED_EPOCH] = self.words[EPOCH]

    def kick(self):
        os.write(self.kick_fd, ONE)


def cpu_times(pid):
    """Nanoseconds for which a process has run, and its first thread was ready to run and had no CPU."""
    threads = [path.read_text().split() for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")]
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return sum(int(ran) for ran, *_ in threads), int(file.read().split()[1])


class Daemon:
    def __init__(self, build, scratch):
        self.socket = scratch / "io.gpuctl"
        self.environment = {**os.environ, "SOFTGPU_TABLE": str(scratch / "softgpu"), "SOFTGPU_SMS": str(SMS)}
        config = scratch / "gpuctl.toml"
        config.write_text("daemon.always_preemptible = true\n")
        command = [build / "src/gpuctld/gpuctld", "--socket", self.socket, "--state", scratch / "state",
                   "--software-gpu", "--config", config]  # fmt: skip
        self.process = subprocess.Popen(
            command, env=self.environment, stderr=subprocess.DEVNULL, start_new_session=True
        )
        if os.geteuid() == 0:
            prefer(self.process.pid)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                Varlink(self.socket).close()
                return
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise SystemExit("crowd.py: gpuctld does not start") from None
                time.sleep(0.01)

    def cpu_s(self):
        return cpu_times(self.process.pid)[0] / 1e9

    def waited_ns(self):
        """For a CPU: the daemon and who looks."""
        return cpu_times(self.process.pid)[1] + cpu_times("self")[1]

    def mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:")) / 1024

    def while_nothing_changes(self, what, seconds):
        time.sleep(2)  # until what changed before has settled
        before, began = self.cpu_s(), time.monotonic()
        time.sleep(seconds)
        share = (self.cpu_s() - before) / (time.monotonic() - began)
        print(f"nothing changes, {what}: {100 * share:.2f} % of a core")


def time_grants(daemon, clients):
    """One client after the other has something to run, and so much that its grant changes."""
    chosen = random.Random(1).sample(clients, TIMED)
    for client in chosen[1:]:
        client.work(SMS)
        client.kick()
    one = chosen[0]
    seen, asked, own = array.array("d"), array.array("d"), array.array("d")
    cpu = daemon.cpu_s()
    for turn in range(TURNS):
        for client in chosen:
            client.follow()
        epoch = one.words[EPOCH]
        one.work(SMS if turn % 2 else 0)
        waited = daemon.waited_ns()
        began = time.monotonic_ns()
        one.kick()
        while one.words[EPOCH] == epoch:
            for client in chosen[1:]:
                client.follow()
            if time.monotonic_ns() - began > 100_000_000:
                break  # this time its grant did not change
        now = time.monotonic_ns()
        if one.words[EPOCH] != epoch:
            seen.append((now - one.longs[DECIDED_NS]) / 1e6)
            asked.append((now - began) / 1e6)
            if daemon.waited_ns() - waited < SOON_NS:
                own.append(seen[-1])
    cpu = daemon.cpu_s() - cpu
    for what, times in (
        ("from its decision", seen),
        ("from its decision, where nobody waited for a CPU for long", own),
        ("from the client's wake-up", asked),
    ):
        ordered = sorted(times) or [0]
        print(f"a grant is in its page {what}: {len(times)} times, median {ordered[len(ordered) // 2]:.3f} ms, "
              f"p99 {ordered[int(0.99 * (len(ordered) - 1))]:.3f}, worst {ordered[-1]:.3f}")  # fmt: skip
    print(f"the daemon's CPU time: {1e6 * cpu / TURNS:.0f} us for each of {TURNS} wake-ups")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    shared_memory = pathlib.Path("/dev/shm")  # as /run, where the service has its state
    place = shared_memory if shared_memory.is_dir() else None
    if os.geteuid() == 0:
        with contextlib.suppress(PermissionError):  # it leads a session already
            os.setsid()
        prefer(os.getpid())
    with tempfile.TemporaryDirectory(prefix="gpuctl-crowd.", dir=place) as scratch:
        daemon = Daemon(options.build.resolve(), pathlib.Path(scratch))
        try:
            root = Varlink(daemon.socket, PATIENCE_S)
            uuid = root.call("GetStatus")["parameters"]["devices"][0]["uuid"]
            for number in range(SLICES):
                root.call("CreateSlice", path=f"s{number}", settings={"weight": 10 * number + 10})
            before = daemon.cpu_s()
            clients = [Client(daemon.socket, f"s{number % SLICES}", uuid) for number in range(options.clients)]
            each = (daemon.cpu_s() - before) / len(clients)
            print(f"{len(clients)} clients attached, {1e6 * each:.0f} us of CPU each")
            daemon.while_nothing_changes("all idle", options.seconds)
            time_grants(daemon, clients)
            at_work = clients[:AT_WORK]
            for client in clients:
                client.work(int(client in at_work))
                client.kick()
            for _ in range(100):
                time.sleep(0.01)
                for client in clients:
                    client.follow()
            daemon.while_nothing_changes(f"{AT_WORK} at work", options.seconds)
            print(f"memory: {daemon.mib():.1f} MiB at most")
        finally:
            daemon.process.terminate()
            daemon.process.wait()


if __name__ == "__main__":
    main()
