#!/usr/bin/env python3
"""What is installed works from where it lies, and is all that the manual pages cite: install_test.py MESON BUILD PREFIX
LIBDIR SYSCONFDIR."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

MESON, BUILD, PREFIX, LIBDIR, SYSCONFDIR = sys.argv[1:6]
SOURCE = pathlib.Path(__file__).resolve().parents[2]
PATIENCE_S = 60
PROGRAM = """
#include <gpuslice/gpuslice.h>
#include <stdio.h>
int main(void) { return printf("%d\\n", gpuslice_version()) < 0; }
"""


def run(*words, **more):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=PATIENCE_S, **more)


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ.pop("LD_LIBRARY_PATH", None)  # of the build tree, from `meson test`
        place = tempfile.TemporaryDirectory(prefix="gpuctl-test.")
        cls.addClassCleanup(place.cleanup)
        cls.root = pathlib.Path(place.name) / "root"
        done = run(MESON, "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", cls.root, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.scratch = pathlib.Path(place.name)

    def inside(self, path):
        return self.root / str(path).lstrip("/")

    def prefixed(self, path):
        return self.inside(PREFIX) / path

    def check(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_the_daemon_reads_the_configuration_that_is_installed(self):
        self.assertTrue(self.inside(SYSCONFDIR).joinpath("gpuctl.toml").is_file())
        self.assertTrue(self.inside(SYSCONFDIR).joinpath("gpuctl.toml.d").is_dir())
        said = " ".join(self.check(run(self.prefixed("sbin/gpuctld"), "--help")).split())
        self.assertIn(f"FILE.d/*.toml, not {SYSCONFDIR}/gpuctl.toml;", said)
        if PREFIX in ("/usr", "/usr/local"):  # as README and manual say
            self.assertEqual(SYSCONFDIR, "/etc")

    def test_a_program_runs_in_a_slice(self):
        """With what lies below DESTDIR, on the software GPU that lies there."""
        socket = self.scratch / "io.gpuctl"
        gpuctl = [self.prefixed("bin/gpuctl"), "--socket", socket]
        daemon = subprocess.Popen(
            [str(self.prefixed("sbin/gpuctld")), "--socket", str(socket), "--software-gpu"],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            until = time.monotonic() + PATIENCE_S
            while run(*gpuctl, "status", check=False).returncode != 0:
                if daemon.poll() is not None or time.monotonic() > until:
                    self.fail(f"no daemon: {daemon.stderr.read() if daemon.poll() is not None else ''}")
                time.sleep(0.05)
            self.check(run(*gpuctl, "create-slice", "s"))
            maps = self.check(run(*gpuctl, "run", "--slice", "s", "--", "cat", "/proc/self/maps"))
            self.assertIn(str(self.prefixed(LIBDIR) / "libgpuslice.so.0"), maps)
        finally:
            daemon.terminate()
            daemon.communicate(timeout=PATIENCE_S)

    @unittest.skipUnless(shutil.which("pkg-config") and shutil.which("cc"), "no pkg-config or compiler here")
    def test_a_program_links_the_library(self):
        libraries = self.prefixed(LIBDIR)
        environment = {
            **os.environ,
            "PKG_CONFIG_LIBDIR": str(libraries / "pkgconfig"),
            "PKG_CONFIG_SYSROOT_DIR": str(self.root),
        }
        flags = self.check(run("pkg-config", "--cflags", "--libs", "gpuslice", env=environment)).split()
        self.assertIn("-lgpuslice", flags)
        source, program = self.scratch / "p.c", self.scratch / "p"
        source.write_text(PROGRAM)
        # Where the library is built with a sanitizer, its runtime is not there.
        self.check(run("cc", "-Wl,--allow-shlib-undefined", source, "-o", program, *flags))
        needed = self.check(run("readelf", "-d", program))
        self.assertIn("[libgpuslice.so.0]", needed)
        if re.search(r"lib\w*san\.so", self.check(run("readelf", "-d", libraries / "libgpuslice.so"))):
            return
        linked = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
        preloaded = {**linked, "LD_PRELOAD": str(libraries / "libgpuslice.so.0")}
        for environment in (linked, preloaded):
            self.assertRegex(self.check(run(program, env=environment)), r"^\d+\n$")
        # The file that is preloaded is the one that is linked.
        traced = self.check(run(program, env={**preloaded, "LD_TRACE_LOADED_OBJECTS": "1"}))
        self.assertEqual(traced.count("libgpuslice.so"), traced.count(f"{libraries}/libgpuslice.so.0"), traced)

    def test_every_c_library_can_load_what_containers_preload(self):
        libraries = self.prefixed(LIBDIR) / "gpuctl"
        (line,) = (libraries / "ld.so.preload").read_text().splitlines()
        self.assertEqual(pathlib.PurePath(line).name, "libgpuslice-preload.so")
        library = libraries / "libgpuslice-preload.so"
        dynamic = self.check(run("readelf", "--wide", "--dynamic", library))
        self.assertIn("(AUXILIARY)", dynamic)
        self.assertIn("[libgpuslice.so]", dynamic)
        # Where ld.so finds the library in a directory of its own for new ones, and an old one finds nothing.
        self.assertIn(f"runpath: [{pathlib.PurePath(line).parents[2]}]", dynamic)
        self.assertEqual(pathlib.PurePath(line).parents[0].parts[-2:], ("glibc-hwcaps", "x86-64-v2"))
        self.assertEqual(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic), ["libc.so.6"])
        versions = re.findall(r"GLIBC_([\d.]+)", self.check(run("readelf", "--wide", "--version-info", library)))
        self.assertLessEqual(max(tuple(map(int, version.split("."))) for version in versions), (2, 4))

    def test_the_plugin_for_slurm_preloads_the_library_that_is_installed(self):
        plugin = next(self.root.rglob("slurm-wlm/gpuctl.so"), None)
        if plugin is None:
            self.skipTest("it is not built: no slurm/spank.h (Debian: libslurm-dev)")
        paths = re.findall(rb"(/[\w./+-]*/libgpuslice\.so[.\d]*)\0", plugin.read_bytes())
        self.assertTrue(paths)
        for path in paths:
            self.assertTrue(self.inside(path.decode()).is_file(), path)

    def test_manual_pages_cite_what_is_there(self):
        pages = self.prefixed("share/man")
        documents = self.prefixed("share/doc/gpuctl")
        cited = set()
        for page in pages.glob("man*/*"):
            self.assertTrue(page.exists(), f"{page} leads nowhere")
            cited |= set(re.findall(r"^\.Pa ((?:docs|examples)/\S+)", page.read_text(), re.MULTILINE))
        self.assertTrue(cited)
        for path in (*cited, "README.md", "NEWS.md", "docs/limits.md", "examples/preemptible.cu"):
            self.assertTrue((documents / path).is_file(), path)
        functions = re.findall(r"^\.Fn (gpuslice_\w+)", (SOURCE / "man/libgpuslice.3").read_text(), re.MULTILINE)
        for function in set(functions):
            self.assertTrue((pages / "man3" / f"{function}.3").is_file(), function)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
