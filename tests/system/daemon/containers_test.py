"""Containers of a real podman with devices that gpuctl makes: their programs are in the slice, whoever starts them
there, are known by their process ids on the host, and images that cannot load the library are not harmed."""

import json
import re
import shutil
import unittest

from tests.system.harness import instance, pages, podman

DEVICE = ("--device", "gpuctl.io/slice=batch:train")
WORK = (instance.BENCH, "run", "work", "--announce", "--json", "--seconds", "60")
DEVICES = "/run/cdi/gpuctl.json"
FIRST_ROOT = 200000  # what a container's root is outside
# Then ld.so looks where one before glibc 2.33 does.
OLDER = "GLIBC_TUNABLES=glibc.cpu.hwcaps=-SSE4_2"
OPEN = instance.ALWAYS_REWRITTEN + 'daemon.socket_mode = "0666"\n'


class Devices(instance.SystemTest):
    """What is written, and when."""

    def test_the_file_is_written_when_slices_have_changed(self):
        self.socket = self.scratch / "run/io.gpuctl"
        self.socket.parent.mkdir()
        self.env["GPUCTL_SOCKET"] = str(self.socket)
        self.start_daemon()
        file = self.scratch / "cdi/devices.json"  # as /run/cdi, where nobody has made that yet
        write = ("cdi", "generate", "--output", file)
        self.gpuctl(*write)
        self.assertFalse(file.exists())  # there is no slice yet
        self.assertEqual(self.gpuctl("cdi", "generate", check=False).returncode, 1)
        self.gpuctl("create-slice", "one")
        self.gpuctl("create-slice", "_two")
        self.assertIn("'_two' has no device", self.gpuctl(*write).stderr)
        before = file.stat().st_ino
        self.gpuctl("set", "one", "weight=7")
        self.gpuctl(*write)
        self.assertEqual(file.stat().st_ino, before)
        self.gpuctl("create-slice", "one/two")
        self.gpuctl(*write)
        self.assertNotEqual(file.stat().st_ino, before)
        self.assertEqual([device["name"] for device in json.loads(file.read_text())["devices"]], ["one", "one:two"])
        # What everybody writes to is not mounted.
        self.socket.parent.chmod(0o1777)
        refused = self.gpuctl(*write, check=False)
        self.assertEqual((refused.returncode, "a directory of its own" in refused.stderr), (1, True), refused.stderr)

    def test_mistakes(self):
        for words in ((), ("make",), ("generate", "--output", "")):
            self.assertEqual(self.gpuctl("cdi", *words, check=False).returncode, 2, words)


class WithPodman(instance.SystemTest):
    """Has a daemon, the slices batch and batch/train, and their devices for containers of the podman `kind`."""

    kind = podman.Podman

    def setUp(self):
        super().setUp()
        # All of it is mounted: nothing but the socket is to be there.
        (self.scratch / "run").mkdir()
        self.socket = self.scratch / "run/io.gpuctl"
        self.env["GPUCTL_SOCKET"] = str(self.socket)
        self.scratch.chmod(0o755)
        self.start_daemon(config=OPEN)
        self.gpuctl("create-slice", "batch", "--max", "4")
        self.gpuctl("create-slice", "batch/train")
        devices = self.scratch / "cdi"
        devices.mkdir()
        self.file = devices / "gpuctl.json"
        self.gpuctl("cdi", "generate", "--output", self.file)
        self.podman = self.kind(self, devices)

    def glibc_image(self):
        self.podman.glibc_image("glibc", instance.BENCH, instance.GPUCTL)
        return "glibc"

    def pid_of(self, container):
        """Of its first process, as the host sees it."""
        return int(self.podman.do("inspect", "--format", "{{.State.Pid}}", container).stdout)

    def busy(self):
        """The client in the slice, once it has launched something."""

        def launched():
            used = [client for client in self.clients("batch/train") if client["usage"]]
            return next((client for client in used if client["usage"][0]["launches"] > 0), None)

        return instance.wait_until(launched, "a program in a container to launch", told=self.logs)

    def logs(self):
        return [self.podman.do("logs", name, check=False) for name in self.podman.do("ps", "-aq").stdout.split()]

    def start(self, name, *options):
        self.podman.run("--detach", "--name", name, *DEVICE, *options, self.glibc_image(), *WORK)
        return self.busy()

    def report(self, name):
        self.assertEqual(self.podman.do("wait", name).stdout.strip(), "0", self.logs())
        return json.loads(self.podman.do("logs", name).stdout.splitlines()[-1])


@unittest.skipIf(podman.why_not(), podman.why_not())
class Containers(WithPodman):
    def test_inside_and_outside_a_program_has_one_process_id(self):
        client = self.start("one")
        self.assertEqual((client["pid"], client["uid"]), (self.pid_of("one"), 0))
        self.assertEqual(client["usage"][0]["granted"], 4)
        inside = ("exec", "one", "gpuctl")
        for ways in (self.gpuctl, lambda *words, **how: self.podman.do(*inside, *words, **how)):
            self.assertIn("max 4", ways("explain", client["pid"]).stdout)
            self.assertIn(f"{client['pid']}  batch/train", ways("top", "--once").stdout)
            self.assertEqual(ways("explain", 1, check=False).returncode, 1)  # the id in the container
        self.assertIn("its id on the host", self.podman.do(*inside, "explain", 1, check=False).stderr)
        self.podman.do(*inside, "kill", client["pid"], check=False)  # it ends with process 1 of its container
        self.assertRightResults(self.report("one"))

    def test_what_is_started_later_is_in_the_slice_too(self):
        self.podman.run("--detach", "--name", "later", *DEVICE, self.glibc_image(), "sleep", "1000")
        self.podman.do("exec", "--detach", "later", "env", "-i", *WORK)
        client = self.busy()
        self.assertNotEqual(client["pid"], self.pid_of("later"))
        self.gpuctl("kill", client["pid"])
        self.assertEqual(self.clients("batch/train"), [])
        run = self.podman.do("exec", "later", "gpuctl", "run", "--slice", "batch", "cat", "/proc/self/maps")
        self.assertIn("/libgpuslice.so", run.stdout)

    def test_a_stop_ends_the_programs_and_no_other(self):
        neighbour = self.start_bench("batch", "work", "--announce", "--seconds", "60")
        neighbour.wait_started()
        self.start("stopped")
        self.podman.do("stop", "--time", "60", "stopped")
        self.assertEqual(self.clients("batch/train"), [])
        self.assertRightResults(self.report("stopped"))
        self.assertRightResults(neighbour.stop())

    def test_the_root_of_a_user_namespace_is_another_user(self):
        self.gpuctl("create-slice", "theirs", "--owner", str(FIRST_ROOT))
        self.gpuctl("cdi", "generate", "--output", self.file)
        mapped = ("--uidmap", f"0:{FIRST_ROOT}:1000", "--gidmap", f"0:{FIRST_ROOT}:1000")
        glibc = self.glibc_image()
        refused = ("--rm", *mapped, *DEVICE, glibc, "gpuctl", "set", "batch", "max=8")
        said = self.podman.run(*refused, check=False)
        self.assertEqual((said.returncode, "permission denied" in said.stderr), (1, True), said.stderr)
        self.podman.run("--detach", "--name", "mapped", *mapped, "--device", "gpuctl.io/slice=theirs", glibc, *WORK)
        pid = self.pid_of("mapped")
        instance.wait_until(lambda: self.usage("theirs", pid), "the program to attach", told=self.logs)
        self.assertEqual([client["uid"] for client in self.clients("theirs")], [FIRST_ROOT])
        self.podman.do("exec", "mapped", "gpuctl", "kill", "theirs", check=False)
        self.assertRightResults(self.report("mapped"))

    def test_what_an_image_preloads_stays(self):
        own = next(path for path in podman.libraries_of(instance.BENCH) if "/libm." in path)
        show = ("sh", "-c", "echo $LD_PRELOAD; cat /proc/self/maps")
        said = self.podman.run("--rm", *DEVICE, "--env", f"LD_PRELOAD={own}", self.glibc_image(), *show).stdout
        self.assertTrue(said.startswith(f"{own}\n"), said)
        self.assertRegex(said, r"/libm\.")
        self.assertIn("/libgpuslice.so", said)

    def test_an_image_that_cannot_load_the_library_is_not_harmed_and_says_so(self):
        show = ("sh", "-c", "cat /proc/self/maps")
        done = self.podman.run("--rm", *DEVICE, "--env", OLDER, self.glibc_image(), *show)
        self.assertNotIn("/libgpuslice.so", done.stdout)
        self.assertIn("/libgpuslice-preload.so", done.stdout)
        self.assertRegex(done.stderr, r"^gpuctl: slice 'batch/train' does not limit this container: glibc 2\.\d+ .*\n$")

    def test_doctor_says_inside_whether_the_library_is_in_programs(self):
        for options, said in (
            ((), "ok       container: its programs are in slice batch/train, if their user may be in it\n"),
            (("--env", OLDER), "error    container: the library is not in this container's programs"),
        ):
            ask = ("sh", "-c", "gpuctl doctor; true")
            self.assertIn(said, self.podman.run("--rm", *DEVICE, *options, self.glibc_image(), *ask).stdout)

    @unittest.skipUnless(
        shutil.which("musl-gcc") and shutil.which("busybox") and podman.MUSL.exists(), "no musl-gcc or busybox here"
    )
    def test_an_image_with_musl_is_not_harmed(self):
        self.podman.musl_image("musl")
        done = self.podman.run("--rm", *DEVICE, "musl", "/bin/it_ran")
        self.assertEqual((done.stdout, done.stderr), ("it ran\n", ""))
        shown = self.podman.run("--rm", *DEVICE, "musl", "cat", "/etc/ld.so.preload").stdout
        self.assertIn("libgpuslice-preload", shown)

    def test_every_command_of_the_page(self):
        gpus = {"name": "0", "containerEdits": {"env": ["NVIDIA=its device"]}}
        (self.file.parent / "nvidia.json").write_text(
            json.dumps({"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [gpus]})
        )
        self.gpuctl("delete-slice", "batch/train")
        self.gpuctl("delete-slice", "batch")
        self.file.unlink()
        self.glibc_image()
        commands = [command for _, command in pages.run_by("containers")]
        self.assertGreater(len(commands), 10)
        self.pid = None
        for command in commands:
            if self.pid is None and re.search("PID|NAME", command):
                self.start_the_named()
            with self.subTest(command=command):
                self.do_as_the_page_says(command)

    def start_the_named(self):
        """The container NAME of the page, whose first program is PID."""
        self.podman.run("--detach", "--name", "named", "--device", "gpuctl.io/slice=batch", "glibc", *WORK)
        self.pid = self.pid_of("named")
        instance.wait_until(lambda: self.usage("batch", self.pid), "the program to attach", told=self.logs)

    def do_as_the_page_says(self, command):
        known = {"PID": self.pid, "NAME": "named", "IMAGE": "glibc", DEVICES: self.file}
        words = [known.get(word, word) for word in command.removeprefix("sudo ").split()]
        if words[:2] == ["podman", "run"]:
            ran = self.podman.run("--rm", *words[2:-1], "sh", "-c", "echo $GPUCTL_SLICE $NVIDIA")
            self.assertEqual(ran.stdout.split()[0], re.search("slice=(\\w+)", command)[1])
            self.assertEqual("its device" in ran.stdout, "nvidia.com" in command)
        elif words[0] == "podman":
            self.podman.do(*words[1:])
        elif words[:2] == ["gpuctl", "cdi"]:
            self.file.unlink()
            self.gpuctl(*words[1:])
            self.assertTrue(self.file.exists())
        else:
            self.assertEqual(words[0], "gpuctl")
            self.gpuctl(*words[1:])
            if words[1] == "create-slice":
                self.gpuctl("cdi", "generate", "--output", self.file)  # as the units do

    def test_a_device_goes_with_its_slice(self):
        self.gpuctl("delete-slice", "batch/train")
        self.gpuctl("cdi", "generate", "--output", self.file)
        refused = self.podman.run("--rm", *DEVICE, self.glibc_image(), "id", check=False)
        self.assertIn("gpuctl.io/slice=batch:train", refused.stderr)
        self.assertNotEqual(refused.returncode, 0)
        self.gpuctl("delete-slice", "batch")
        self.gpuctl("cdi", "generate", "--output", self.file)
        self.assertFalse(self.file.exists())


@unittest.skipIf(podman.why_not_rootless(), podman.why_not_rootless())
class Rootless(WithPodman):
    kind = podman.Rootless

    def test_the_root_of_a_container_is_the_user_who_started_it(self):
        self.gpuctl("create-slice", "theirs", "--owner", str(podman.USER))
        self.gpuctl("cdi", "generate", "--output", self.file)
        device = ("--device", "gpuctl.io/slice=theirs")
        self.podman.run("--detach", "--name", "rootless", *device, self.glibc_image(), *WORK)
        pid = self.pid_of("rootless")
        instance.wait_until(lambda: self.usage("theirs", pid), "the program to attach", told=self.logs)
        self.assertEqual([client["uid"] for client in self.clients("theirs")], [podman.USER])
        inside = ("exec", "rootless", "gpuctl")
        self.assertEqual(self.podman.do(*inside[:2], "id", "-u").stdout, "0\n")
        refused = self.podman.do(*inside, "set", "batch", "max=8", check=False)
        self.assertEqual((refused.returncode, "permission denied" in refused.stderr), (1, True), refused.stderr)
        self.podman.do(*inside, "create-slice", "theirs/own", "--max", "2")
        self.assertIn("own", self.gpuctl("list").stdout)
        self.podman.do(*inside, "kill", "theirs", check=False)
        self.assertRightResults(self.report("rootless"))


if __name__ == "__main__":
    instance.main()
