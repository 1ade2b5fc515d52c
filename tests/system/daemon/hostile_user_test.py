"""Ordinary users attack the daemon; root's calls and other users' programs go on: hostile_user_test.py.

Without --minutes each attack (attacks.py) is made once, all at the same time. With it, processes of three users attack
in random order, and rest in the last part of each minute, so that root's waits can be compared. What holds: root's
calls are right; no slice is lost; programs compute what they should and go on launching; never more SMs are granted
than there are; the daemon's memory and its log stay small; afterwards nothing of the attackers is left in it. Times are
printed and never asserted. Another user's program runs on a software GPU of its own, because such a GPU belongs to one
user; the daemon divides the SMs among them as if it were the same.
"""

import contextlib
import heapq
import json
import os
import random
import signal
import statistics
import sys
import time
import traceback
import typing

from tests.system.harness import attacks, endurance, instance, users, witness

USERS = (users.NOBODY, 64001, 64002, 64003, 64004)  # who attack, in the long run
FIRST_USER = 64001  # in the short run each attack is made by a user of its own
TENANT = 64100
NICE = -10  # of the daemon: systemd/gpuctld.service
NICER = 5  # are attackers than root's caller: what is measured is the daemon, and not who gets a CPU
PROCESSES = 12  # that attack at the same time, in the long run
SHORT_S = 4
MINUTE_S, REST_S = 60, 12
ATTACK_S = (1, 6)
LAST_CALLS_S = 300
KIB_AT_MOST = 128 << 10  # resident
LINES_AT_ONCE, LINES_A_SECOND = 500, 5  # of the log, for all users together (user_budgets.h)
LINE_BYTES = 1024
SLOWEST = 3  # of root's calls, of which more is said
SLICES = {**endurance.SLICES, "tenant": {"reserve": 2, "owner_uid": TENANT}}


def cpu_times(pid):
    """Seconds for which a process of one thread has run, and for which it was ready to run and had no CPU."""
    with open(f"/proc/{pid}/schedstat") as file:
        ran, waited, _ = file.read().split()
    return int(ran) / 1e9, int(waited) / 1e9


class Wait(typing.NamedTuple):
    """A call of root's. In ms: how long it took, and for how long caller and daemon ran, and waited for a CPU."""

    name: str
    began: float  # time.monotonic()
    took: float
    caller_ran: float
    caller_waited: float
    daemon_ran: float
    daemon_waited: float

    def own(self):
        """Without the time in which caller or daemon waited for a CPU."""
        return max(0, self.took - self.caller_waited - self.daemon_waited)


class Timed:
    """Root's calls, each timed, in a process of their own that does nothing else."""

    def __init__(self, test):
        self.path = test.scratch / "calls"
        self.child = os.fork()
        if self.child == 0:
            status = 1
            try:
                self.calls(test)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        test.addCleanup(self.end)

    def calls(self, test):
        over = []
        signal.signal(signal.SIGTERM, lambda *_: over.append(True))
        with (
            contextlib.closing(instance.Connection(test.socket, instance.PATIENCE_S)) as standing,
            open(self.path, "w", encoding="utf-8") as out,
        ):
            for number in range(sys.maxsize):
                if over:
                    return
                path, settings = f"of-root-{number % 7}", {"weight": number % 100 + 1}
                for name, method, parameters in (
                    ("status", "GetStatus", {}),
                    ("list", "ListSlices", {}),
                    ("create", "CreateSlice", {"path": path, "settings": settings}),
                    ("set", "SetSlice", {"path": path, "settings": settings}),
                    ("show", "GetSlice", {"path": path}),
                    ("delete", "DeleteSlice", {"path": path}),
                ):
                    before, began = (*cpu_times("self"), *cpu_times(test.daemon.pid)), time.monotonic()
                    fresh = None if number % 2 else instance.Connection(test.socket, instance.PATIENCE_S)
                    said = (fresh or standing).call(method, **parameters)
                    took, after = time.monotonic() - began, (*cpu_times("self"), *cpu_times(test.daemon.pid))
                    times = [1000 * ms for ms in (took, *(later - earlier for later, earlier in zip(after, before)))]
                    out.write(f"{name} {began} {' '.join(map(str, times))}\n")
                    if fresh:
                        fresh.close()
                    if name == "show" and said["slice"]["weight"] != settings["weight"]:
                        raise AssertionError(said)
                    time.sleep(0.002)

    def end(self):
        if self.child:
            os.kill(self.child, signal.SIGTERM)
            self.status = os.waitpid(self.child, 0)[1]
            self.child = None
        return self.status

    def waits(self):
        for line in self.path.read_text().splitlines():
            name, *numbers = line.split()
            yield Wait(name, *map(float, numbers))


class HostileUser(endurance.Endurance):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("only root can start programs of other users")
        self.start_daemon(config=instance.ALWAYS_REWRITTEN + 'daemon.socket_mode = "0666"\n')
        os.setpriority(os.PRIO_PROCESS, self.daemon.pid, NICE)
        self.scratch.chmod(0o711)
        self.attackers = {}  # by process: where it will say what it sent
        self.addCleanup(self.kill_attackers)

    def test_others_go_on(self):
        self.create_slices(SLICES)
        own = [f"of-{uid}" for uid in self.uids()]
        for path, uid in zip(own, self.uids()):
            self.call("CreateSlice", path=path, settings={"owner_uid": uid, "memory_max": 1 << 30, "weight": 7})
        running = {"ls": self.start_client("ls"), "batch/a": self.start_client("batch/a"), "tenant": self.tenant()}
        for path, client in running.items():
            self.check_program(path, client, "before")
        watcher = endurance.Watcher(self.socket)
        watcher.start()
        seen = witness.Witness(self, {running[path].pid for path in ("ls", "batch/a")})
        seen.start()
        before = len(self.descriptors())
        timed = Timed(self)
        began = time.monotonic()
        until = began + (60 * self.minutes if self.minutes else SHORT_S)
        self.start_attackers(running, own, began, until)
        while time.monotonic() < until:
            for path, client in running.items():
                self.check_program(path, client, "under attack")
            self.check_slices("under attack", (*own, "of-root-"))
            self.assertLess(self.daemon.kib("VmHWM"), KIB_AT_MOST * instance.SLOWER, "KiB of the daemon")
            time.sleep(0.1)
        sent = self.end_attackers()
        took = time.monotonic() - began
        self.assertEqual(timed.end(), 0, "root's calls failed")
        watcher.stop()
        seen.stop()
        print(seen.says(), file=sys.stderr)
        seen.check()
        self.report(timed, watcher, sent, began, took)
        for path, client in running.items():
            self.check_program(path, client, "after the attack")
            self.end_well(client)
        instance.wait_until(lambda: self.call("GetStatus")["clients"] == 0, "all clients to be gone")
        if self.minutes:  # what they sent before they ended is served within their budgets, and that takes a while
            left = f"at most {before} descriptors, of"
            instance.wait_until(lambda: len(self.descriptors()) <= before, left, LAST_CALLS_S, told=self.descriptors)
        self.assertLessEqual(watcher.most, instance.SMS, "more SMs were granted than there are")
        self.assertEqual(set(sent), set(attacks.Attacker.names()))
        self.assertTrue(all(sent.values()), sent)
        self.check_log(took)

    def uids(self):
        return USERS if self.minutes else range(FIRST_USER, FIRST_USER + len(attacks.Attacker.names()))

    def tenant(self):
        """Another user's program, with files of its own."""
        home = self.scratch / "tenant"
        home.mkdir()
        os.chown(home, TENANT, TENANT)
        env = {**self.env, "SOFTGPU_TABLE": str(home / "softgpu"), "XDG_CACHE_HOME": str(home / "cache")}
        return self.start_client("tenant", env=env, uid=TENANT)

    def descriptors(self):
        """What the daemon has open."""
        folder, found = f"/proc/{self.daemon.pid}/fd", []
        for name in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):
                found.append(os.readlink(f"{folder}/{name}"))
        return found

    def start_attackers(self, running, own, began, until):
        """In the short run one for each attack."""
        uuid = self.call("GetStatus")["devices"][0]["uuid"]
        others = [self.daemon.pid, os.getpid(), *(client.pid for client in running.values())]
        names = attacks.Attacker.names()
        for number in range(PROCESSES if self.minutes else len(names)):
            uid = self.uids()[number % len(self.uids())]
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    os.close(read)
                    os.nice(NICER)
                    users.become(uid)
                    users.end_with_parent()
                    attacker = attacks.Attacker(self.socket, uuid, f"of-{uid}", others, self.seed * 1000 + number)
                    if self.minutes:
                        self.attack_and_rest(attacker, number, began, until)
                    else:
                        self.attack_once(attacker, names[number])
                    os.write(write, json.dumps(attacker.sent).encode())
                    status = 0
                finally:
                    os._exit(status)
            os.close(write)
            self.attackers[child] = os.fdopen(read, "rb")

    def kill_attackers(self):
        """Those of a test that failed."""
        for child, said in self.attackers.items():
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            said.close()

    def attack_once(self, attacker, name):
        """Where the machine is busy it may take a while until the attack has begun."""
        attacker.attack(name, SHORT_S)
        last = time.monotonic() + instance.PATIENCE_S
        while not attacker.sent.get(name) and time.monotonic() < last:
            attacker.attack(name, 1)

    def attack_and_rest(self, attacker, number, began, until):
        names = attacker.names()
        first = True
        while (now := time.monotonic()) < until:
            minute, second = divmod(now - began, MINUTE_S)
            if second >= MINUTE_S - REST_S:
                time.sleep(min(MINUTE_S - second, max(0, until - now)))
                continue
            # Every third minute all do the same, another attack every few seconds.
            common = random.Random(f"{self.seed} {minute} {second // ATTACK_S[1]}")
            chosen = (common if minute % 3 == 2 else attacker.random).choice(names)
            if first:  # each attack at least once
                chosen, first = names[number], False
            lasts = min(attacker.random.uniform(*ATTACK_S), MINUTE_S - REST_S - second, until - now)
            attacker.attack(chosen, lasts)

    def end_attackers(self):
        """What was sent, by attack."""
        sent = {}
        while self.attackers:
            child, said = self.attackers.popitem()
            with said:
                for name, number in json.loads(said.read() or "{}").items():
                    sent[name] = sent.get(name, 0) + number
            self.assertEqual(os.waitpid(child, 0)[1], 0, "an attacker failed")
        return sent

    def check_log(self, seconds):
        lines = self.daemon.err().splitlines()
        # Each may be preceded by one that says how many were left out.
        self.assertLess(len(lines), 100 + 2 * (LINES_AT_ONCE + LINES_A_SECOND * seconds))
        self.assertLess(max(map(len, lines)), LINE_BYTES)

    def report(self, timed, watcher, sent, began, took):
        def say(line):
            print(line, file=sys.stderr)

        say(f"{took:.0f} s; {watcher.looks} looks, at most {watcher.most} of {instance.SMS} SMs granted")
        say("sent: " + ", ".join(f"{name} {number}" for name, number in sorted(sent.items())))
        say(f"daemon: at most {self.daemon.kib('VmHWM') >> 10} MiB, now {self.daemon.kib('VmRSS') >> 10} MiB, "
            f"{len(self.daemon.err().splitlines())} lines of log; {self.seconds_of_daemon()}")  # fmt: skip
        waits, every = {}, list(timed.waits())
        for wait in every:
            resting = self.minutes and (wait.began - began) % MINUTE_S >= MINUTE_S - REST_S
            for key in (wait.name, "all"):
                waits.setdefault((key, "at rest" if resting else "attacked"), []).append((wait.took, wait.own()))
        for (name, state), of_call in sorted(waits.items()):
            all_ms, own = (sorted(ms) for ms in zip(*of_call))
            p99 = int(0.99 * (len(all_ms) - 1))
            say(f"root's {name}, {state}: {len(all_ms)} calls, median {statistics.median(all_ms):.1f} ms, p99 "
                f"{all_ms[p99]:.1f}, worst {all_ms[-1]:.1f}; without waiting for a CPU: median "
                f"{statistics.median(own):.2f}, p99 {own[p99]:.2f}, worst {own[-1]:.2f}")  # fmt: skip

        for wait in heapq.nlargest(SLOWEST, every, key=lambda wait: wait.took):
            say(f"{wait.name} took {wait.took:.0f} ms after {wait.began - began:.0f} s: the daemon ran "
                f"{wait.daemon_ran:.0f} ms and waited {wait.daemon_waited:.0f} for a CPU, the caller "
                f"{wait.caller_ran:.0f} and {wait.caller_waited:.0f}")  # fmt: skip

    def seconds_of_daemon(self):
        ran, waited = cpu_times(self.daemon.pid)
        return f"it ran {ran:.1f} s and waited {waited:.1f} s for a CPU"


if __name__ == "__main__":
    endurance.main(HostileUser)
