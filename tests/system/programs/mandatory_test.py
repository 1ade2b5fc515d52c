"""Where the library is mandatory for somebody, gpuctld ends their programs that use a GPU without it, and no others.

gpuctld --look answers behind a socket as in gpuctld-look@.service. A file stands for CUDA's device, which the software
GPU does not need: what has it open, and the software GPU's driver, uses a GPU.
"""

import json
import os
import re
import signal
import socket
import subprocess
import threading

from tests.system.harness import instance

NAMED, OTHER = 5001, 5002
SETTING = 'daemon.socket_mode = "0666"\ndaemon.mandatory = "{}"\n'
DRIVER = instance.SOFTGPU / "libcuda.so.1"
OPENS = 'exec 9<"$0"; echo ready; exec sleep 600'
WAYS = {"plain": OPENS, "deaf to SIGTERM": f"trap '' TERM; {OPENS}", "heir of the device": f"unset LD_PRELOAD; {OPENS}"}


class Mandatory(instance.SystemTest):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("only root can start programs of other users")
        super().setUp()
        self.scratch.chmod(0o755)
        self.device = self.scratch / "nvidia-uvm"
        self.device.touch()
        if os.path.exists("/sys/module/nvidia_uvm/refcnt"):
            self.skipTest("who uses the real device decides here whether it is looked for anybody")
        self.look = self.scratch / "look"
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(self.look))
        listener.listen()
        threading.Thread(target=self.answer, args=(listener,), daemon=True).start()

    def answer(self, listener):
        """What the service manager does for gpuctld-look.socket."""
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:  # the test is over
                return
            with connection:
                command = [instance.GPUCTLD, "--look", "--look-for", self.device.resolve()]
                subprocess.run(command, env=self.env, stdin=connection, stdout=connection, check=False)

    def start_looking(self, mandatory):
        config = SETTING.format(mandatory) + f"slice.s.owner_uid = {NAMED}\n"
        self.start_daemon("--look-socket", self.look, config=config)

    def use_gpu(self, how="plain", uid=NAMED, managed=False):
        others = self.env_of_others()
        preloaded = [others.get("LD_PRELOAD"), str(DRIVER)]
        env = self.env if managed else {**others, "LD_PRELOAD": ":".join(filter(None, preloaded))}
        run = [instance.GPUCTL, "run", "--slice", "s"] if managed else []
        command = [*run, "sh", "-c", WAYS[how], self.device]
        program = instance.Program(command, env, self.scratch, len(self.programs), uid)
        self.programs.append(program)
        instance.wait_until(lambda: "ready" in program.out() or program.process.poll() is not None, "its start")
        self.assertIsNone(program.process.poll(), program.err())
        return program

    def told(self, kind, program):
        events = self.call("Events")["events"]
        return [one for one in events if one["kind"] == kind and one["pid"] == program.pid]

    def wait_told(self, kind, program):
        def seen():
            return f"{self.call('GetStatus')['notes']} {self.daemon.err()[-1500:]}"

        instance.wait_until(lambda: self.told(kind, program), f"the event {kind}", told=seen)

    def runs(self, program):
        return program.process.poll() is None

    def reload(self, mandatory):
        path = self.scratch / "gpuctl.toml"
        path.write_text(re.sub(r'mandatory = ".*"', f'mandatory = "{mandatory}"', path.read_text()))
        self.daemon.process.send_signal(signal.SIGHUP)

    def test_who_is_named_and_has_not_the_library_is_ended(self):
        plain, deaf, heir = map(self.use_gpu, WAYS)
        other = self.use_gpu(uid=OTHER)
        self.start_looking(f"user:{NAMED}")
        managed = self.use_gpu(managed=True)
        for program in (plain, other):
            self.wait_told("unmanaged", program)
        (event,) = self.told("unmanaged", plain)
        self.assertRegex(event["text"], f"so nothing limits it, and it is ended: .* mandatory for user:{NAMED}$")
        self.assertRegex(self.told("unmanaged", other)[0]["text"], "so nothing limits it$")
        self.assertEqual(self.told("killed", plain), [], "it has time until then: it may be starting up")
        self.assertTrue(self.runs(plain))

        said = self.gpuctl("doctor", plain.pid, check=False)
        self.assertEqual(said.returncode, 2)
        self.assertIn(f"gpuctld ends it, as the library is mandatory for user:{NAMED}", said.stdout)
        self.assertNotIn("mandatory", self.gpuctl("doctor", other.pid, check=False).stdout)
        said = self.gpuctl("explain", plain.pid, check=False)
        self.assertRegex(said.stderr, "^gpuctl: .* is not attached to a slice; .*; gpuctld ends it, as .*\n$")
        (note,) = [one for one in self.call("GetStatus")["notes"] if f"process {plain.pid} " in one]
        self.assertIn("it is ended", note)

        self.assertEqual(plain.wait(), -signal.SIGTERM)
        (event,) = self.told("killed", plain)
        self.assertEqual((event["uid"], event["command"], event["slice"]), (NAMED, "sleep", ""))
        self.assertRegex(event["text"], f"^in .*: it uses a GPU without .* mandatory for user:{NAMED}; with SIGTERM$")
        self.assertEqual(deaf.wait(), -signal.SIGKILL)
        self.assertEqual(len(self.told("killed", deaf)), 1)
        log = self.daemon.err()
        for program in (plain, deaf):
            self.assertRegex(log, rf"process {program.pid} \(sleep\) of user {NAMED} is ended, in .*with SIGTERM\n")
        self.assertRegex(log, rf"process {deaf.pid} \(sleep\) is still there 10000 ms after SIGTERM: it is killed\n")
        for program in (managed, other, heir):
            self.assertTrue(self.runs(program))
            self.assertEqual(self.told("killed", program), [])
        self.assertEqual(self.told("unmanaged", managed), [])

    def test_a_reload_names_somebody_and_one_with_a_mistake_changes_nothing(self):
        plain = self.use_gpu()
        self.start_looking("none")
        self.wait_told("unmanaged", plain)
        self.assertNotIn("mandatory", self.gpuctl_json("status"))
        self.assertNotIn("mandatory", self.gpuctl("doctor", plain.pid, check=False).stdout)
        self.reload("user:no such")
        instance.wait_until(lambda: "there is no user 'no such'" in self.daemon.err(), "the line")
        self.assertRegex(self.daemon.err(), r"gpuctl\.toml:2:\d+: daemon\.mandatory: there is no user 'no such'")
        self.assertTrue(self.runs(plain))
        self.reload("user:*")
        self.assertEqual(plain.wait(), -signal.SIGTERM)
        self.assertEqual(json.loads(self.gpuctl("status", "--json").stdout)["mandatory"], "user:*")

    def test_who_is_not_seen_is_not_ended_and_that_is_said(self):
        self.start_daemon(config=SETTING.format("user:*"))
        status = self.call("GetStatus")
        self.assertNotIn("mandatory", status)
        self.assertTrue(any(one.startswith("the library is mandatory for user:*, but") for one in status["notes"]))


if __name__ == "__main__":
    instance.main()
