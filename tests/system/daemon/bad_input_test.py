"""Bad input is answered with one clear line, and nothing has changed: configuration, command line, socket, fatbin."""

import random
import socket

from tests.system.harness import instance

FATBIN_MAGIC = bytes.fromhex("50ed55ba")


class BadConfiguration(instance.SystemTest):
    def refused(self, config):
        """The one line with which gpuctld refuses a configuration."""
        daemon = self.start_daemon(config=config, wait=False)
        self.assertNotEqual(daemon.wait(), 0)
        # Which GPU it manages, gpuctld says in any case.
        lines = [line for line in daemon.err().splitlines() if "no NVIDIA GPU is managed" not in line]
        self.assertEqual(len(lines), 1, daemon.err())
        self.assertFalse(self.socket.exists(), "the socket of a daemon that does not run")
        return lines[0]

    def test_unknown_key(self):
        line = self.refused('[slice."ls"]\nreserv = 8\n')
        self.assertIn("gpuctl.toml:2:", line)
        self.assertIn("reserv", line)

    def test_wrong_type(self):
        line = self.refused('[slice."ls"]\nreserve = "eight"\n')
        self.assertIn("gpuctl.toml:2:", line)
        self.assertIn("reserve", line)

    def test_reserve_that_no_gpu_has(self):
        line = self.refused('[slice."ls"]\nreserve = 257\n')
        self.assertIn("reserve", line)
        self.assertIn("gpuctl.toml:2:", line)

    def test_reserve_that_this_gpu_does_not_have(self):
        """The GPU is only found when the daemon runs, so it runs, and says what is so there."""
        self.start_daemon(config='[slice."ls"]\nreserve = 6\n\n[slice."other"]\nreserve = 3\n')
        said = "the reserve of slice other, 3 SMs, does not fit GPU 0, which has 8: it is 2 there"
        self.assertIn(said, self.daemon.err())
        self.assertIn(said, self.gpuctl("status").stdout)

    def test_memory_min_that_this_gpu_does_not_have(self):
        """One of them would."""
        self.start_daemon(config='[slice."a"]\nmemory_min = "3G"\n\n[slice."b"]\nmemory_min = "3G"\n')
        for path in "ab":
            said = f"the memory_min of slice {path}, 3G, does not fit GPU 0, which has 4G: it is 2G there"
            self.assertIn(said, self.daemon.err())
            self.assertIn(said, self.gpuctl("status").stdout)

    def test_not_toml(self):
        self.assertIn("gpuctl.toml:1:", self.refused("][ nonsense\n"))


class BadCommand(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.start_daemon()
        self.gpuctl("create-slice", "ls", "--reserve", 6)
        self.before = self.call("ListSlices")

    def refused(self, *arguments):
        done = self.gpuctl(*arguments, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertEqual(self.call("ListSlices"), self.before)
        return done.stderr

    def test_reserve_that_does_not_fit(self):
        line = self.refused("create-slice", "more", "--reserve", 3)
        self.assertIn("reserve", line)
        self.assertIn("2", line)  # what is left

    def test_growing_a_reserve_that_does_not_fit(self):
        self.refused("set", "ls", "reserve=9", "weight=3")

    def test_slice_that_does_not_exist(self):
        for arguments in (
            ("set", "nope", "max=3"),
            ("show", "nope"),
            ("delete-slice", "nope"),
            ("run", "--slice", "nope", "true"),
            ("create-slice", "nope/child"),
        ):
            with self.subTest(arguments):
                self.assertIn("nope", self.refused(*arguments))

    def test_slice_that_exists(self):
        self.assertIn("ls", self.refused("create-slice", "ls"))

    def test_values_that_are_none(self):
        for assignment in ("max=-1", "max=many", "weight=0", "reserve=1.5", "policy=best", "nonsense=1", "max"):
            with self.subTest(assignment):
                self.refused("set", "ls", assignment)

    def test_half_a_change_is_no_change(self):
        self.refused("set", "ls", "weight=7", "max=-3")


class Garbage(instance.SystemTest):
    warp_instruction_ns = 2000

    def send(self, data):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(instance.PATIENCE_S)
            connection.connect(str(self.socket))
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
            except (BrokenPipeError, ConnectionResetError):
                pass  # the daemon may close as soon as it has seen enough

    def test_garbage_on_the_socket(self):
        daemon = self.start_daemon()
        self.gpuctl("create-slice", "s")
        before = self.call("ListSlices")
        client = self.start_bench("s", "vectorAdd", "--count", 1000000, "--announce")
        client.wait_started()
        noise = random.Random(5)
        messages = [
            b"\0",
            b"\0\0\0",
            b"{",
            b"{}\0",
            b"[]\0",
            b"null\0",
            b'{"method":7}\0',
            b'{"method":"io.gpuctl.Nope"}\0',
            b'{"method":"io.gpuctl.SetSlice","parameters":{"path":"s","settings":{"max":"x"}}}\0',
            b'{"method":"io.gpuctl.DeleteSlice","parameters":[]}\0',
            b'{"method":"io.gpuctl.Attach"}\0',
            b'{"method":"io.gpuctl.Monitor","parameters":{"interval_ms":-1},"more":true}\0',
            b"[" * 100_000 + b"\0",
            b'{"a":' * 50_000 + b"\0",
            b"x" * (8 << 20),
            b"\xff\xfe" * 1000 + b"\0",
        ]
        messages += [noise.randbytes(noise.randrange(1, 5000)) for _ in range(100)]
        for message in messages:
            self.send(message)
        self.assertIsNone(daemon.process.poll(), daemon.err())
        self.assertEqual([n["path"] for n in self.call("ListSlices")["slices"]], [n["path"] for n in before["slices"]])
        self.assertRightResults(client.stop())

    def test_wrong_kind_of_parameter_is_named(self):
        self.start_daemon()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.socket))
            connection.sendall(b'{"method":"io.gpuctl.GetSlice","parameters":{"path":3}}\0')
            reply = instance.json.loads(connection.recv(65536)[:-1])
        self.assertEqual(reply["error"], "io.gpuctl.InvalidValue")
        self.assertEqual(reply["parameters"]["field"], "path")


class Fatbin(instance.SystemTest):
    """A damaged image is the driver's to refuse: libgpuslice passes it on, and the program sees the driver's error."""

    warp_instruction_ns = 2000

    def setUp(self):
        super().setUp()
        self.start_daemon()
        self.gpuctl("create-slice", "s")

    def both(self, *command):
        """Runs a program without gpuctl and in a slice, which must make no difference; its exit status and stderr."""
        outcomes = [(program.wait(), program.err()) for program in (self.start(*command), self.start_in("s", *command))]
        self.assertEqual(outcomes[0], outcomes[1], command)
        return outcomes[0]

    def test_truncated_and_damaged_images(self):
        whole = (instance.CUDA_PROGRAMS / "vector_add.fatbin").read_bytes()
        noise = random.Random(9)
        damaged = [whole[:length] for length in (0, 3, 15, 16, 40, 100, len(whole) // 2, len(whole) - 9)]
        for _ in range(12):
            copy = bytearray(whole)
            for _ in range(4):
                copy[noise.randrange(min(len(copy), 400))] = noise.randrange(256)
            damaged.append(bytes(copy))
        loader, path = instance.CUDA_PROGRAMS / "load_image", self.scratch / "image"
        for function in ("cuModuleLoadData", "cuModuleLoadFatBinary"):
            path.write_bytes(whole)
            self.assertEqual(self.both(loader, path, function), (0, ""))
            refused = 0
            for number, data in enumerate(damaged):
                with self.subTest(function, case=number):
                    path.write_bytes(data)
                    status, line = self.both(loader, path, function)
                    self.assertIn(status, (0, 1))  # refused, or harmless: no crash
                    self.assertEqual(len(line.splitlines()), status)
                    refused += status
            self.assertGreaterEqual(refused, 8, "the truncated ones at least")

    def test_program_with_a_damaged_image(self):
        whole = (instance.CUDA_PROGRAMS / "vector_add_shared").read_bytes()
        start = whole.rindex(FATBIN_MAGIC)  # the program's own; the runtime's comes before it
        damaged = bytearray(whole)
        size = int.from_bytes(whole[start + 8 : start + 16], "little")
        damaged[start + 16 : start + 16 + size] = bytes(size)
        path = self.scratch / "program"
        path.write_bytes(damaged)
        path.chmod(0o755)
        status, line = self.both(path, 1)
        self.assertEqual(status, 1)
        self.assertEqual(len(line.splitlines()), 1, line)

    def tearDown(self):
        self.assertEqual(self.call("ListSlices")["slices"][-1]["path"], "s")


if __name__ == "__main__":
    instance.main()
