"""Users who ask for more than their budgets: root's calls are answered meanwhile, and the daemon stays small."""

import contextlib
import json
import os
import resource
import socket
import threading

from tests.system.harness import instance, users

USERS = (users.NOBODY, 64001, 64002, 64003, 64004, 64005, 64006, 64007, 64008)
ROUNDS = 40
KIB_AT_MOST = 256 << 10  # resident
FLOODS_OF_EACH = 3
CLIENTS, LONG_CALL = 30, 3 << 20  # bytes
DESCRIPTORS = 4 * 4096  # for as many connections as there may be
FULL_KIB = 23 << 10  # nearly what all users may leave with the daemon


def message(method, oneway=True, **parameters):
    call = {"method": "io.gpuctl." + method, "parameters": parameters, "oneway": oneway}
    return json.dumps(call).encode() + b"\0"


KERNELS = message("ReportKernels", kernels=[{"name": "k", "module": "m"}] * 4000)
FLOODS = {
    "calls": message("GetSlice", path="/") * 800,
    "slices": message("CreateSlice", path="x", settings={}) * 800,
    "long": KERNELS,
    "half": KERNELS[:60000],
    "junk": b"\xff\0{}\0[[[[\0" * 500,
    "attach": message("Attach", slice="", device_uuids=["GPU-0"], resumed=True) * 100,
}


def connect(path):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    return connection


def flood(path, what):
    """Sends without an end, and connects again whenever the daemon closes the connection."""
    while True:
        with contextlib.suppress(OSError), connect(path) as connection:
            while True:
                connection.sendall(FLOODS[what])


def hoard(path):
    """Keeps as many connections as the daemon takes."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    kept = []
    with contextlib.suppress(OSError):
        for _ in range(1100):
            kept.append(connect(path))
    return kept


class Budgets(instance.SystemTest):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("only root can start programs of other users")
        self.start_daemon(config='[daemon]\nsocket_mode = "0666"\n')
        self.scratch.chmod(0o711)

    def flood_as(self, uid, what):
        def begin():
            for _ in range(FLOODS_OF_EACH):
                threading.Thread(target=flood, args=(str(self.socket), what), daemon=True).start()

        return users.start_as(self, uid, begin)[0]

    def roots_calls_are_right(self):
        """Each is on a new connection, as those of gpuctl are."""
        for number in range(ROUNDS):
            path = f"s{number}"
            self.call("CreateSlice", path=path, settings={"weight": 7})
            self.call("SetSlice", path=path, settings={"weight": number + 1})
            self.assertEqual(self.call("GetSlice", path=path)["slice"]["weight"], number + 1)
            self.call("DeleteSlice", path=path)
        self.assertEqual([s["path"] for s in self.call("ListSlices")["slices"]], ["/"])

    def test_floods_of_calls(self):
        floods = {what: self.flood_as(uid, what) for uid, what in zip(USERS, FLOODS)}
        self.roots_calls_are_right()
        for what, child in floods.items():
            self.assertEqual(os.waitpid(child, os.WNOHANG), (0, 0), f"the flood of {what} has ended")
        self.assertLess(self.daemon.kib("VmHWM"), KIB_AT_MOST * instance.SLOWER)

    def test_a_long_call_leaves_no_memory_behind(self):
        uuid = self.call("GetStatus")["devices"][0]["uuid"]
        attach = message("Attach", oneway=False, slice="", device_uuids=[uuid], resumed=False)
        long = message("ReportKernels", oneway=False, kernels=[]).replace(b"[", b"[" + b" " * LONG_CALL)
        kept = contextlib.ExitStack()
        self.addCleanup(kept.close)
        for _ in range(CLIENTS):
            connection = kept.enter_context(connect(str(self.socket)))
            for call in (attach, long):
                connection.sendall(call)
                self.assertNotIn(b"error", connection.recv(1 << 16))
        self.assertEqual(self.call("GetStatus")["clients"], CLIENTS)
        self.assertLess(self.daemon.kib("RssAnon"), CLIENTS * LONG_CALL >> 11, "KiB of the daemon")

    def test_who_sends_little_is_not_closed_because_others_send_much(self):
        def begin_calls(sizes):
            kept = []
            for size in sizes:
                with contextlib.suppress(OSError):
                    kept.append(connect(str(self.socket)))
                    kept[-1].sendall(b"{" + b" " * size)
            return kept

        def ask():
            with connect(str(self.socket)) as connection:
                connection.settimeout(instance.PATIENCE_S)
                connection.sendall(message("GetStatus", oneway=False))
                return connection.recv(1 << 16) or b"closed"

        for uid in USERS[1:5]:
            users.start_as(self, uid, lambda: begin_calls([60_000] * 110))
        instance.wait_until(lambda: self.daemon.kib("RssAnon") > FULL_KIB, "the daemon to have read that")
        users.start_as(self, USERS[6], lambda: begin_calls([8000] * 9 + [1000] * 9 + [120] * 10 + [20] * 9))
        _, answer = users.start_as(self, USERS[5], ask)
        self.assertIn(b"devices", answer)

    def test_connections_are_kept_for_root(self):
        for uid in USERS:
            users.start_as(self, uid, lambda: hoard(str(self.socket)))
        self.roots_calls_are_right()
        self.assertIn("is closed: this user, or all users, have too many", self.daemon.err())

    def test_the_table_of_descriptors_does_not_grow_while_others_wait(self):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        self.assertGreaterEqual(self.daemon.kib("FDSize"), min(most, DESCRIPTORS) // 2)

    def test_a_child_is_bounded_by_the_slice_above(self):
        self.call("CreateSlice", path="mine", settings={"owner_uid": USERS[0], "priority": -10})

        def create():
            with connect(str(self.socket)) as connection:
                call = {"path": "mine/other", "settings": {"priority": 100}}
                connection.sendall(json.dumps({"method": "io.gpuctl.CreateSlice", "parameters": call}).encode() + b"\0")
                return connection.recv(1 << 16)

        said = json.loads(users.start_as(self, USERS[0], create)[1].rstrip(b"\0"))
        self.assertNotIn("error", said)
        self.assertEqual(self.call("GetSlice", path="mine/other")["slice"]["effective_priority"], -10)
        self.assertIn("priority -10 instead of 100", self.gpuctl("show", "mine/other").stdout)
        self.assertIn("100 (-10)", self.gpuctl("list").stdout)
        self.assertIn("100 (-10)", self.gpuctl("top", "--once").stdout)


if __name__ == "__main__":
    instance.main()
