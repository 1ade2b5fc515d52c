"""What other users than the daemon's may do and see.

    rights_test.py GPUCTLD FAKE_DRIVER

Needs root, to become somebody else; skipped without.
"""

import json
import os
import stat
import subprocess
import sys
import unittest

from daemon_instance import UUID, DaemonTestCase, Program, eventually

SKIPPED = 77
SECRET = {
    "name": "secret",
    "module": "module",
    "form": "persistent",
    "reason": "",
    "launches": 1,
    "registers": 32,
    "registers_original": 32,
    "per_sm": 1,
    "block_task_ns": 1000,
}


class RightsTest(DaemonTestCase):
    def test_other_users_have_only_the_rights_they_were_given(self):
        os.chmod(self.directory, 0o755)
        self.start(
            "--config", self.write("c.toml", '[daemon]\nsocket_mode = "0666"\n[slice.theirs]\nowner_uid = 65534\n')
        )
        self.call("CreateSlice", path="ls", settings={"reserve": 8})
        calls = (
            ("CreateSlice", {"path": "x", "settings": {}}),
            ("SetSlice", {"path": "theirs", "settings": {"reserve": 4}}),
            ("DeleteSlice", {"path": "ls"}),
            ("Attach", {"slice": "ls", "device_uuids": [UUID], "resumed": False}),
            ("Attach", {"slice": "/", "device_uuids": [UUID], "resumed": False}),
            ("CreateSlice", {"path": "theirs/own", "settings": {"weight": 3}}),
            ("Attach", {"slice": "theirs/own", "device_uuids": [UUID], "resumed": False}),
        )

        def errors():
            return [self.call(method, **parameters).get("error", "") for method, parameters in calls]

        denied = "io.gpuctl.PermissionDenied"
        self.assertEqual(self.as_user(65534, errors), [denied, denied, denied, denied, "", "", ""])

    def test_others_see_what_a_program_has_and_not_what_it_runs(self):
        os.chmod(self.directory, 0o755)
        self.start(
            "--config", self.write("c.toml", '[daemon]\nsocket_mode = "0666"\n[slice.theirs]\nowner_uid = 65534\n')
        )
        program = Program(self.path, "theirs")
        program.varlink.call("ReportKernels", kernels=[SECRET])
        program.demand(132)
        pid = os.getpid()

        def look():
            """All commands and kernels that can be seen, and what the program has."""
            answer = lambda *call, **parameters: self.call(*call, **parameters)["parameters"]  # noqa: E731
            clients = [
                *answer("ListClients")["clients"],
                *answer("GetSlice", path="theirs")["clients"],
                *answer("Monitor", interval_ms=1000)["clients"],
                answer("Explain", pid=pid)["client"],
            ]
            kernels = [kernel["name"] for kernel in answer("Explain", pid=pid)["kernels"]]
            others = [(client["pid"], client["uid"], client["slice"]) for client in clients]
            granted = clients[0]["usage"][0]["granted"]
            return [sorted({client["command"] for client in clients}), kernels, others, granted]

        self.assertTrue(eventually(lambda: look()[3] == 132))
        everything = look()
        self.assertIn("rights_test.py", everything[0][0])
        self.assertEqual(everything[1], ["secret"])
        self.assertEqual(self.as_user(65534, look), json.loads(json.dumps(everything)))  # the slice's owner
        others = self.as_user(65533, look)
        self.assertEqual(others[:2], [[""], []])
        self.assertEqual(others[2:], json.loads(json.dumps(everything[2:])))
        program.close()

    def test_others_are_told_of_nothing_but_what_their_own_programs_used(self):
        os.chmod(self.directory, 0o755)
        self.start(
            "--config", self.write("c.toml", '[daemon]\nsocket_mode = "0666"\n[slice.theirs]\nowner_uid = 65534\n')
        )
        asked = ({}, {"slice": "theirs"}, {"uid": 65534}, {"uid": 0})

        def used():
            """Who is named in the answer, or the error, by question; after a launch in `theirs`."""
            program = Program(self.path, "theirs")
            program.launch()
            answers = [self.call("GetUsage", **question) for question in asked]
            program.close()
            return [
                answer.get("error") or sorted({entry["uid"] for entry in answer["parameters"]["entries"]})
                for answer in answers
            ]

        self.assertEqual(used()[0], [0])
        denied = "io.gpuctl.PermissionDenied"
        self.assertEqual(self.as_user(65534, used), [[65534], [65534], [65534], denied])  # the slice's owner
        self.assertEqual(self.as_user(65533, lambda: self.call("GetUsage")["parameters"]["entries"]), [])
        self.assertEqual(used(), [[0, 65534], [0, 65534], [65534], [0]])

    def test_a_process_that_is_another_users_by_now_is_sent_nothing(self):
        os.chmod(self.directory, 0o755)
        self.start("--config", self.write("c.toml", '[daemon]\nsocket_mode = "0666"\n'))
        code = (
            "import os, sys, time; sys.path.insert(0, sys.argv[1]); import daemon_instance as t; os.seteuid(65534)\n"
            'p = t.Program(sys.argv[2], "/"); os.seteuid(0); os.setresuid(0, 0, 0)\n'
            'print("ready", flush=True); time.sleep(600)'
        )
        client = subprocess.Popen(
            [sys.executable, "-c", code, os.path.dirname(os.path.abspath(__file__)), self.path], stdout=subprocess.PIPE
        )
        self.addCleanup(client.communicate)
        self.addCleanup(client.kill)
        client.stdout.readline()
        (ended,) = self.call("Kill", pid=client.pid, signal="KILL")["parameters"]["clients"]
        self.assertEqual((ended["signals"], ended["ended"]), ([], False))
        self.assertIsNone(client.poll())

    def test_the_socket_belongs_to_the_group_that_was_named(self):
        os.chmod(self.directory, 0o755)
        self.start("--config", self.write("c.toml", '[daemon]\nsocket_mode = "0660"\nsocket_group = 65534\n'))
        found = os.stat(self.path)
        self.assertEqual((found.st_gid, stat.S_IMODE(found.st_mode)), (65534, 0o660))
        self.assertTrue(self.as_user(65534, lambda: "parameters" in self.call("GetStatus")))


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("skipped: needs root to become somebody else")
        sys.exit(SKIPPED)
    RightsTest.GPUCTLD, RightsTest.FAKE_DRIVER = (os.path.abspath(argument) for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1], verbosity=2)
