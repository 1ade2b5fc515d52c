"""ioctl passes through libgpuslice as if it were not there: same results, same errno, in threads, handlers and
children."""

import subprocess

from tests.system.harness import instance

IOCTLS = instance.DRIVER_PROGRAMS / "ioctls"
LIBRARY = instance.BUILD / "src/libgpuslice/libgpuslice.so"
ENOTTY = 25


class Ioctl(instance.SystemTest):
    def output(self, **more):
        done = subprocess.run([str(IOCTLS)], env={**self.env, **more}, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_nothing_changes(self):
        plain = self.output()
        self.assertIn(f"TIOCGWINSZ of a pipe: -1, errno {ENOTTY}\n", plain)
        self.assertIn("FIONREAD: 5\n", plain)
        self.assertEqual(plain.count("the driver's request on a pipe: -1"), 5)
        self.assertIn("in a handler: 5, errno 77\n", plain)
        self.assertIn("\nthreads: right\n", plain)
        self.assertTrue(plain.endswith("FIONREAD in a child: 5, threads: right\nthe child: 0\n"), plain)
        preloaded = {"LD_PRELOAD": str(LIBRARY), "GPUCTL_SLICE": "/", "GPUSLICE_DEBUG": str(self.scratch / "debug")}
        self.assertEqual(self.output(**preloaded), plain)

    def test_the_library_is_what_the_program_calls(self):
        # Bound at the start, said by the dynamic linker: else the test above would compare the C library with itself.
        done = subprocess.run(
            [str(IOCTLS)],
            capture_output=True,
            text=True,
            timeout=60,
            env={**self.env, "LD_PRELOAD": str(LIBRARY), "LD_DEBUG": "bindings", "LD_BIND_NOW": "1"},
        )
        bindings = [line for line in done.stderr.splitlines() if "`ioctl'" in line]
        from_program = [line for line in bindings if f"{IOCTLS} [0] to" in line]
        from_library = [line for line in bindings if f"{LIBRARY} [0] to" in line]
        self.assertTrue(from_program and all(f"to {LIBRARY}" in line for line in from_program), bindings)
        # The C library's, or what a sanitizer puts before it.
        right = (f"to {LIBRARY}", "libc.so", "libasan.so", "libtsan.so")
        self.assertFalse([line for line in from_library if not any(name in line for name in right)], bindings)


if __name__ == "__main__":
    instance.main()
