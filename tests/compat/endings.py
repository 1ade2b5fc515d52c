#!/usr/bin/env python3
"""Ends a program in the middle of its kernels, in each of several ways, and looks at a neighbour on the same GPU and at
the program that starts next: plain and in a slice. In a slice `gpuctl kill` is one more way. Exit status 0 if nobody in
a slice had it worse."""

import collections
import concurrent.futures
import json
import subprocess
import sys
import time

from lab import MPS, TIME_SLICED
from single import SHORT, Session, parser

WAYS = (
    ("return", 400),
    ("exit", 400),
    ("_exit", 400),
    ("quick_exit", 400),
    ("abort", 400),
    ("raise", 400),
    ("kill", 400),
)
BY_GPUCTL = "gpuctl kill"
NEIGHBOUR_ROUNDS = 4000
KILL_AFTER_S = 0.8


def ended_by_gpuctl(session, path):
    """Starts the program and has the daemon end it; its outcome."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        victim = pool.submit(session.run, [str(path), "return", "20000"], True)
        time.sleep(KILL_AFTER_S)
        said = subprocess.run(
            [session.lab.gpuctl_path, "show", "s", "--json"],
            env=session.lab.env,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        clients = json.loads(said.stdout)["clients"]
        mine = [client["pid"] for client in clients if path.name in client.get("command", "")]
        for pid in mine:
            subprocess.run(
                [session.lab.gpuctl_path, "kill", str(pid)], env=session.lab.env, timeout=60, capture_output=True
            )
        return victim.result()


def trial(session, mode, short, victim, way, in_slice):
    """Words that say how the neighbour and the next program ended."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        neighbour = pool.submit(session.run, [str(short), str(NEIGHBOUR_ROUNDS)], in_slice)
        time.sleep(0.1)
        if way == BY_GPUCTL:
            ended_by_gpuctl(session, victim)
        else:
            session.run([str(victim), way[0], str(way[1])], in_slice)
        following = session.run([str(short)], in_slice)
        outcomes = {"neighbour": neighbour.result(), "next": following}
    found = [
        f"{name}: "
        + (outcome.err.strip().splitlines()[-1].rpartition(": ")[2] if outcome.err.strip() else outcome.status_text())
        for name, outcome in outcomes.items()
        if outcome.status != 0
    ]
    if mode == MPS:
        session.lab.mps.mend()
    return tuple(found) or ("both well",)


def main():
    options = parser(__doc__)
    options.add_argument("number", type=int, help="times each way")
    options = options.parse_args()
    options.modes = options.modes or (TIME_SLICED,)
    session = Session(options)
    status = 0
    with session.open():
        paths = {
            program.name: path for program, path in session.programs(lambda program: program.name in (SHORT, "exits"))
        }
        if len(paths) != 2:
            sys.exit("compat: the programs are not there")
        for mode in options.modes:
            with session.lab.mode(mode), session.lab.serving():
                for way in (*WAYS, BY_GPUCTL):
                    worse = {}
                    for in_slice in (False, True):
                        if (way == BY_GPUCTL and not in_slice) or session.deadline.passed():
                            continue
                        found = collections.Counter(
                            word
                            for _ in range(options.number)
                            for word in trial(session, mode, paths[SHORT], paths["exits"], way, in_slice)
                        )
                        worse[in_slice] = sum(count for word, count in found.items() if word != "both well")
                        said = ", ".join(f"{count} {word}" for word, count in found.most_common())
                        print(
                            f"{mode} {'slice' if in_slice else 'plain'} "
                            f"{way if isinstance(way, str) else way[0]}: {said}",
                            flush=True,
                        )
                    status |= worse.get(True, 0) > worse.get(False, 0)
    return status


if __name__ == "__main__":
    sys.exit(main())
