"""Ordinary users attack the daemon; calls of root and of an innocent user, and programs, go on: hostile_user_test.py.

Without --minutes each attack (attacks.py) is made once, all at the same time. With it, processes of three users attack
in random order, and rest in the last part of each minute, so that waits can be compared. What holds: all calls
are right; no slice is lost; programs compute what they should and go on launching; never more SMs are granted
than there are; the daemon's memory and its log stay small; afterwards nothing of the attackers is left in it. Times are
printed and never asserted. Another user's program runs on a software GPU of its own, because such a GPU belongs to one
user; the daemon divides the SMs among them as if it were the same.
"""

import collections
import contextlib
import heapq
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
import traceback
import typing

from tests.system.harness import attacks, endurance, instance, users, witness

USERS = (users.NOBODY, 64001, 64002, 64003, 64004)  # who attack, in the long run
FIRST_USER = 64001  # in the short run each attack is made by a user of its own
TENANT, INNOCENT = 64100, 64101
NICE = -10  # of the daemon: systemd/gpuctld.service
NICER = 5  # are attackers than those whose calls are timed: what is measured is the daemon, and not who gets a CPU
PROCESSES = 12  # that attack at the same time, in the long run
SHORT_S = 4
MINUTE_S, REST_S = 60, 12
ATTACK_S = (1, 6)
LAST_CALLS_S = 300
EVERY_S = {"root": 0.01, "innocent": 0.25}  # a timed call is begun: equally often at rest and under attack
KIB_AT_MOST = 128 << 10  # resident
LINES_AT_ONCE, LINES_A_SECOND = 500, 5  # of the log, for all users together (user_budgets.h)
LINE_BYTES = 1024
SLOWEST = 3  # of all calls, of which more is said
SLICES = {
    **endurance.SLICES,
    "tenant": {"reserve": 2, "owner_uid": TENANT},
    "innocent": {"owner_uid": INNOCENT},
    "innocent/own": {},
}


def cpu_times(pid):
    """Seconds for which a process of one thread has run, and for which it was ready to run and had no CPU."""
    with open(f"/proc/{pid}/schedstat") as file:
        ran, waited, _ = file.read().split()
    return int(ran) / 1e9, int(waited) / 1e9


def stolen_s():
    """Seconds for which another machine had one of this machine's processors."""
    with open("/proc/stat") as file:
        return int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


def say(line):
    print(line, file=sys.stderr)


def prefer(pid, nice):
    """The process, alone in its session, gets a CPU before those of other sessions: where the kernel divides processors
    by sessions (autogroup) its niceness counts only within one. Systemd divides them by services then.
    """
    os.setpriority(os.PRIO_PROCESS, pid, nice)
    with contextlib.suppress(OSError), open(f"/proc/{pid}/autogroup", "w") as file:
        file.write(str(nice))


class Wait(typing.NamedTuple):
    """A timed call. In ms: how long it took, and for how long caller and daemon ran, and waited for a CPU."""

    name: str
    on: str  # "new": a connection made for it
    began: float  # time.monotonic()
    took: float
    caller_ran: float
    caller_waited: float
    daemon_ran: float
    daemon_waited: float

    def own(self):
        """Without the time in which caller or daemon waited for a CPU."""
        return max(0, self.took - self.caller_waited - self.daemon_waited)


def weight_of(number):
    return number % 100 + 1


def roots_calls(number):
    path, settings = f"of-root-{number % 7}", {"weight": weight_of(number)}
    return (
        ("status", "GetStatus", {}),
        ("list", "ListSlices", {}),
        ("create", "CreateSlice", {"path": path, "settings": settings}),
        ("set", "SetSlice", {"path": path, "settings": settings}),
        ("show", "GetSlice", {"path": path}),
        ("delete", "DeleteSlice", {"path": path}),
    )


def calls_of_innocent(number):
    """Of one who has a slice and asks seldom."""
    return (
        ("status", "GetStatus", {}),
        ("set", "SetSlice", {"path": "innocent/own", "settings": {"weight": weight_of(number)}}),
        ("show", "GetSlice", {"path": "innocent/own"}),
    )


class Timed:
    """Calls of a user, each timed, in a process of their own that does nothing else. Nobody waits for a CPU longer than
    the daemon because of them: its session is preferred too.
    """

    def __init__(self, test, who, uid, calls):
        self.who = who
        self.path = test.scratch / f"calls-of-{who}"
        self.child = os.fork()
        if self.child == 0:
            status = 1
            try:
                os.setsid()
                prefer(os.getpid(), NICE)
                with open(self.path, "w", encoding="utf-8") as out:
                    users.become(uid)
                    users.end_with_parent()
                    self.calls(test, calls, out)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        test.addCleanup(self.end)

    def calls(self, test, calls, out):
        # A handler would interrupt connect(2), and Python takes that for a connection.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        with contextlib.closing(instance.Connection(test.socket, instance.PATIENCE_S)) as standing:
            for number in range(sys.maxsize):
                if signal.sigpending():
                    return
                for name, method, parameters in calls(number):
                    before, began = (*cpu_times("self"), *cpu_times(test.daemon.pid)), time.monotonic()
                    fresh = None if number % 2 else instance.Connection(test.socket, instance.PATIENCE_S)
                    said = (fresh or standing).call(method, **parameters)
                    took, after = time.monotonic() - began, (*cpu_times("self"), *cpu_times(test.daemon.pid))
                    times = [1000 * ms for ms in (took, *(later - earlier for later, earlier in zip(after, before)))]
                    on = "new" if fresh else "standing"
                    out.write(f"{name} {on} {began} {' '.join(map(str, times))}\n")
                    if fresh:
                        fresh.close()
                    if name == "show" and said["slice"]["weight"] != weight_of(number):
                        raise AssertionError(said)
                    time.sleep(max(0, began + EVERY_S[self.who] - time.monotonic()))

    def end(self):
        if self.child:
            os.kill(self.child, signal.SIGTERM)
            self.status = os.waitpid(self.child, 0)[1]
            self.child = None
        return self.status

    def waits(self):
        for line in self.path.read_text().splitlines():
            name, on, *numbers = line.split()
            yield Wait(name, on, *map(float, numbers))


class Launched:
    """How often programs launch, under attack and at rest."""

    def __init__(self):
        self.before = {}  # by program: when, how many launches, in which state
        self.sums = {}  # by state and program: seconds, launches

    def see(self, path, launches, state):
        now = time.monotonic()
        before, self.before[path] = self.before.get(path), (now, launches, state)
        if before and before[2] == state:
            seconds, more = self.sums.get((state, path), (0, 0))
            self.sums[state, path] = seconds + now - before[0], more + launches - before[1]

    def says(self):
        rates = (f"{path}, {state}: {more / seconds:.1f}" for (state, path), (seconds, more) in self.sums.items())
        return "launches a second of " + "; ".join(sorted(rates))


class Ran:
    """Of each state: seconds, for how many of them the daemon with all its threads ran, and its first one waited for a
    CPU.
    """

    def __init__(self, pid):
        self.pid = pid
        self.before = self.now()
        self.sums = {}

    def now(self):
        clock = ~self.pid << 3 | 2  # clock_getcpuclockid(3)
        return time.monotonic(), time.clock_gettime(clock), cpu_times(self.pid)[1]

    def see(self, state):
        now = self.now()
        more = (later - earlier for later, earlier in zip(now, self.before))
        self.sums[state] = [a + b for a, b in zip(self.sums.get(state, (0, 0, 0)), more)]
        self.before = now

    def says(self):
        """Calls of root and of an innocent user, and of the watcher, are in it at rest too."""
        return "the daemon, in % of a core: " + "; ".join(
            f"{state} it ran {100 * ran / took:.1f} and waited {100 * waited / took:.1f} for a CPU"
            for state, (took, ran, waited) in sorted(self.sums.items())
        )


class Sleeps(threading.Thread):
    """Where the daemon's first thread sleeps, other than for something to do."""

    EVERY_S = 0.01
    FOR_WORK = ("0", "ep_poll", "do_epoll_wait")  # 0: it runs

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.path = f"/proc/{pid}/task/{pid}/wchan"
        self.over = threading.Event()
        self.began = time.monotonic()
        self.looks = 0
        self.sums = collections.Counter()  # looks, by function of the kernel
        self.longest = []  # seconds without a break in it, the function, since when

    def run(self):
        where = since = None
        while not self.over.wait(self.EVERY_S):
            with open(self.path) as file:
                now = file.read()
            self.looks += 1
            if now in self.FOR_WORK:
                now = None
            else:
                self.sums[now] += 1
            if now != where:
                if where:
                    self.longest = heapq.nlargest(SLOWEST, [*self.longest, (time.monotonic() - since, where, since)])
                where, since = now, time.monotonic()

    def stop(self):
        self.over.set()
        self.join()

    def says(self):
        parts = (f"{where} {100 * looks / self.looks:.2f} %" for where, looks in self.sums.most_common())
        longest = (f"{1000 * s:.0f} ms in {where} after {at - self.began:.0f} s" for s, where, at in self.longest)
        return f"the daemon slept, but for something to do, in: {', '.join(parts)}; longest: {', '.join(longest)}"


class HostileUser(endurance.Endurance):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("only root can start programs of other users")
        shared_memory = pathlib.Path("/dev/shm")
        if shared_memory.is_dir():  # as /run, where the service has its state: to write to a busy disk may wait
            self.state = pathlib.Path(tempfile.mkdtemp(prefix="gpuctl-state.", dir=shared_memory))
            self.addCleanup(shutil.rmtree, self.state)
        self.start_daemon(config=instance.ALWAYS_REWRITTEN + 'daemon.socket_mode = "0666"\n', session=True)
        prefer(self.daemon.pid, NICE)
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
        callers = [Timed(self, "root", 0, roots_calls), Timed(self, "innocent", INNOCENT, calls_of_innocent)]
        began = time.monotonic()
        launched, ran, sleeps = Launched(), Ran(self.daemon.pid), Sleeps(self.daemon.pid)
        sleeps.start()
        stolen = stolen_s()
        until = began + (60 * self.minutes if self.minutes else SHORT_S)
        self.start_attackers(running, own, began, until)
        while time.monotonic() < until:
            state = self.period(time.monotonic() - began)
            for path, client in running.items():
                self.check_program(path, client, "under attack")
                launched.see(path, self.launches(path, client), state)
            ran.see(state)
            self.check_slices("under attack", (*own, "of-root-"))
            self.assertLess(self.daemon.kib("VmHWM"), KIB_AT_MOST * instance.SLOWER, "KiB of the daemon")
            time.sleep(0.1)
        sleeps.stop()
        sent = self.end_attackers()
        took = time.monotonic() - began
        for timed in callers:
            self.assertEqual(timed.end(), 0, f"calls of {timed.who} failed")
        watcher.stop()
        seen.stop()
        self.report(watcher, sent, took)
        say(ran.says())
        say(sleeps.says())
        for timed in callers:
            self.report_waits(timed, began)
        say(launched.says())
        say(f"{100 * (stolen_s() - stolen) / took:.1f} % of a processor were another machine's; load {os.getloadavg()}")
        say(seen.says())
        seen.check()
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
                    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # which others of its user have sent to its slice
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
        # What root does is told however often it is.
        lines = [line for line in self.daemon.err().splitlines() if " by root" not in line]
        # Each may be preceded by one that says how many were left out.
        self.assertLess(len(lines), 100 + 2 * (LINES_AT_ONCE + LINES_A_SECOND * seconds))
        self.assertLess(max(map(len, lines)), LINE_BYTES)

    def period(self, seconds):
        return "at rest" if self.minutes and seconds % MINUTE_S >= MINUTE_S - REST_S else "attacked"

    def report(self, watcher, sent, took):
        say(f"{took:.0f} s; {watcher.looks} looks, at most {watcher.most} of {instance.SMS} SMs granted")
        say("sent: " + ", ".join(f"{name} {number}" for name, number in sorted(sent.items())))
        say(f"daemon: at most {self.daemon.kib('VmHWM') >> 10} MiB, now {self.daemon.kib('VmRSS') >> 10} MiB, "
            f"{len(self.daemon.err().splitlines())} lines of log; {self.seconds_of_daemon(took)}")  # fmt: skip

    def report_waits(self, timed, began):
        waits, every = {}, list(timed.waits())
        for wait in every:
            for key in (wait.name, "all"):
                waits.setdefault((key, self.period(wait.began - began)), []).append((wait.took, wait.own()))
        for (name, state), of_call in sorted(waits.items()):
            all_ms, own = (sorted(ms) for ms in zip(*of_call))
            p99 = int(0.99 * (len(all_ms) - 1))
            say(f"{timed.who}'s {name}, {state}: {len(all_ms)} calls, median {statistics.median(all_ms):.1f} ms, p99 "
                f"{all_ms[p99]:.1f}, worst {all_ms[-1]:.1f}; without waiting for a CPU: median "
                f"{statistics.median(own):.2f}, p99 {own[p99]:.2f}, worst {own[-1]:.2f}")  # fmt: skip
        for wait in heapq.nlargest(SLOWEST, every, key=lambda wait: wait.took):
            say(f"{wait.name} on a {wait.on} connection took {wait.took:.0f} ms after {wait.began - began:.0f} s: the "
                f"daemon ran {wait.daemon_ran:.0f} ms and waited {wait.daemon_waited:.0f} for a CPU, the caller "
                f"{wait.caller_ran:.0f} and {wait.caller_waited:.0f}")  # fmt: skip

    def seconds_of_daemon(self, took):
        ran, waited = cpu_times(self.daemon.pid)
        return f"it ran {ran:.1f} s ({100 * ran / took:.1f} % of a core) and waited {waited:.1f} s for a CPU"


if __name__ == "__main__":
    endurance.main(HostileUser)
