"""What the long tests share (chaos_test.py, hostile_user_test.py): programs in a tree of slices, and what must hold of
them. --minutes N --seed S goes on for that long; otherwise a test is short and part of every test run.
"""

import argparse
import json
import sys
import threading

from tests.system.harness import instance

SLICES = {
    "ls": {"reserve": 2, "priority": 10},
    "batch": {"max": 5, "weight": 30},
    "batch/a": {},
    "batch/b": {"weight": 3},
}


class Watcher(threading.Thread):
    """Asks for all grants again and again, and remembers the most that were granted at once on the GPU."""

    def __init__(self, socket):
        super().__init__(daemon=True)
        self.socket = socket
        self.over = threading.Event()
        self.looks = self.most = 0

    def run(self):
        connection = None
        while not self.over.wait(0.02):
            try:
                connection = connection or instance.Connection(self.socket, instance.PATIENCE_S)
                seen = connection.call("Monitor", interval_ms=1000)
            except (OSError, instance.Failed):  # the daemon is away
                if connection:
                    connection.close()
                connection = None
                continue
            self.looks += 1
            shares = (client for client in seen["clients"] if not client["isolated"])  # others have it by turns
            grants = (usage["granted"] for client in shares for usage in client["usage"])
            self.most = max(self.most, sum(grants))
        if connection:
            connection.close()

    def stop(self):
        self.over.set()
        self.join()


class Endurance(instance.SystemTest):
    warp_instruction_ns = 5000
    minutes = None
    seed = 1

    def create_slices(self, slices):
        """self.slices: what they are set to, and stay if all is well."""
        self.slices = {path: dict(settings) for path, settings in slices.items()}
        for path, settings in slices.items():
            self.call("CreateSlice", path=path, settings=settings)

    def start_client(self, path, **how):
        """A program that launches until it is ended, and checks the last result."""
        arguments = ("--blocks", 64, "--iterations", 20, "--count", 10**9, "--depth", 2, "--check", "last")
        return self.start_in(path, instance.BENCH, "run", "work", *arguments, "--announce", "--json", **how)

    def check_slices(self, when, others=()):
        """All slices are there as they were set, and no others but those whose paths begin with one of `others`."""
        there = {node["path"]: node for node in self.call("ListSlices")["slices"]}
        mine = {path for path in there if path != "/" and not path.startswith(others)}
        self.assertEqual(mine, set(self.slices), when)
        for path, settings in self.slices.items():
            self.assertEqual({key: there[path].get(key) for key in settings}, settings, f"{path} {when}")

    def check_program(self, path, client, when):
        """It lives, and launches again."""
        self.assertIsNone(client.process.poll(), f"{path} {when}: {client.err()}")
        instance.wait_until(lambda: self.usage(path, client.pid), f"{path} to be there {when}")
        before = self.launches(path, client)
        instance.wait_until(lambda: self.launches(path, client) > before, f"{path} to go on {when}")

    def launches(self, path, client):
        return (self.usage(path, client.pid) or {"launches": 0})["launches"]

    def end_well(self, client):
        client.process.terminate()
        self.assertEqual(client.wait(), 0, client.err() + client.out())
        self.assertEqual(json.loads(client.out())["mismatches"], 0, client.out())


def main(test):
    """Runs the tests of the calling file."""
    parser = argparse.ArgumentParser(description=sys.modules[test.__module__].__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, help="go on for so long (default: short)")
    parser.add_argument("--seed", type=int, default=1, help="of what is random (default: 1)")
    options, sys.argv[1:] = parser.parse_known_args()
    test.minutes, test.seed = options.minutes, options.seed
    instance.main()
