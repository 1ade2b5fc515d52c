#!/usr/bin/env python3
"""The Debian packages in a clean root of each suite, booted: installed, used, upgraded, there after a reboot, purged.
And the tarball with the Python package, in directories of their own.

scripts/package.sh --test runs it: GPUCTL_PACKAGES is a directory with the packages. What was before them is in
GPUCTL_PACKAGES_BEFORE (--from), or is the same with a lower version: there was no release yet. Ends with 77, which
Meson counts as skipped, without packages or where no root can be made. GPUCTL_SUITES: suites of Debian (default:
bookworm trixie). Roots are kept in build-package, for the next time."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/house")]
from old_systems import too_new  # noqa: E402

from tests.system.harness import pages  # noqa: E402

KEPT = ROOT / "build-package"
SKIPPED = 77
TOOLS = ("mmdebstrap", "systemd-nspawn")
SUITES = (os.environ.get("GPUCTL_SUITES") or "bookworm trixie").split()
INCLUDED = "systemd,systemd-sysv,dbus,gcc,libc6-dev,pkgconf,python3-prometheus-client,slurm-client,fish,zsh"
BOOT_LIMIT_S = 600
PRODUCT = ("gpuctl", "gpuctld", "libgpuslice0")  # beside it there is what developers and machines without a GPU want
MOST_KIB = 12 * 1000 * 1000 // 1024  # installed
PHASES = ("first", "second")  # boots
USES_A_SLICE = """
import time

import gpuctl

deadline = time.monotonic() + 60
while True:
    try:
        daemon = gpuctl.connect()
        break
    except gpuctl.Unreachable:
        if time.monotonic() > deadline:
            raise
        time.sleep(0.05)
batch = daemon.create("batch", max=5)
batch.run(["gpuslice-bench", "run", "work", "--count", "3"], check=True)
print("max", batch.get().max)
"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def run(*command, **more):
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **more
    )
    assert done.returncode == 0, f"{command[0]}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done


def copy_packages(root):
    """The packages into `packages` of the root, and what was before them into `before` there."""
    to = root / "packages"
    (to / "before").mkdir(parents=True)
    shown = run("dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f=${Version}", "slurm-client").stdout
    slurm = re.match(r"\d+\.\d+", shown)[0]
    for package in installed(PACKAGES, slurm):
        shutil.copy(package, to)
    for package in installed(BEFORE, slurm):
        copy_with_lower_version(package, to / "before", {version_of(one) for one in to.glob("*.deb")})


def installed(directory, slurm):
    """A plugin for another Slurm is not."""
    for package in sorted(directory.glob("*.deb")):
        if "-dbgsym_" not in package.name and not re.match(rf"gpuctl-slurm(?!{re.escape(slurm)}_)", package.name):
            yield package


def version_of(package):
    return run("dpkg-deb", "-f", package, "Version").stdout.strip()


def copy_with_lower_version(package, to, versions):
    """As it is, if it has none of these."""
    version = version_of(package)
    if version not in versions:
        shutil.copy(package, to)
        return
    with tempfile.TemporaryDirectory(prefix="gpuctl-test.") as scratch:
        run("dpkg-deb", "-R", package, scratch)
        control = pathlib.Path(scratch, "DEBIAN/control")
        control.write_text(control.read_text().replace(version, f"{version}~before"))
        run("dpkg-deb", "--root-owner-group", "-Znone", "-b", scratch, to / package.name)


class Packages(unittest.TestCase):
    def check(self, suite):
        archive = KEPT / f"{suite}.tar"
        if not archive.exists() or archive.stat().st_mtime < pathlib.Path(__file__).stat().st_mtime:
            KEPT.mkdir(exist_ok=True)
            unfinished = archive.with_suffix(".new.tar")
            run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={INCLUDED}", suite, unfinished, timeout=1200)
            unfinished.rename(archive)
        with tempfile.TemporaryDirectory(prefix="gpuctl-test.") as scratch:
            root, results = pathlib.Path(scratch, "root"), pathlib.Path(scratch, "root/results")
            root.mkdir()
            run("tar", "-xf", archive, "-C", root, "--exclude=./dev/*", timeout=300)
            copy_packages(root)
            results.mkdir()
            of_pages = [command for page, command in pages.run_by("package") if page != "INSTALL"]
            (results / "commands").write_text("".join(f"{command}\n" for command in of_pages))
            shutil.copy(HERE / "inside.sh", results)
            shutil.copy(ROOT / "tests/boot/stands_in_for_mps.sh", results)
            unit = root / "etc/systemd/system/checks.service"
            shutil.copy(HERE / "checks.service", unit)
            wanted = root / "etc/systemd/system/multi-user.target.wants"
            wanted.mkdir(exist_ok=True)
            (wanted / unit.name).symlink_to(f"/etc/systemd/system/{unit.name}")
            for phase in PHASES:
                (results / "phase").write_text(phase)
                booted = subprocess.run(
                    ["systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", "--private-network"]
                    + ["--console=pipe", "--link-journal=no", f"--directory={root}"],
                    capture_output=True,
                    text=True,
                    check=False,
                    stdin=subprocess.DEVNULL,
                    timeout=BOOT_LIMIT_S,
                )
                output = results / f"{phase}.output"
                said = output.read_text() if output.exists() else booted.stdout[-3000:] + booted.stderr[-3000:]
                self.assertTrue(said.endswith(f"all of {phase} passed\n"), f"{suite}, {phase} boot:\n{said}")

    def test_the_tarball_lies_anywhere_and_the_wheel_speaks_to_its_daemon(self):
        (tarball,), (wheel,) = PACKAGES.glob("*.tar.gz"), PACKAGES.glob("*.whl")
        # The compile helper may write into its cache a little longer than its program runs.
        with tempfile.TemporaryDirectory(prefix="gpuctl-test.", ignore_cleanup_errors=True) as scratch:
            run("tar", "-xzf", tarball, "-C", scratch, "--strip-components=1")
            tried = subprocess.run([f"{scratch}/bin/gpuctl", "--version"], capture_output=True, text=True, check=False)
            if "version `GLIBC_" in tried.stderr:
                self.skipTest("it was built for a newer C library than this machine has")
            socket, modules = f"{scratch}/socket", f"{scratch}/modules"
            run(
                sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", modules, wheel
            )
            daemon = subprocess.Popen([f"{scratch}/sbin/gpuctld", "--socket", socket, "--software-gpu"])
            try:
                env = {
                    "PATH": f"{scratch}/bin:{os.environ['PATH']}",
                    "GPUCTL_SOCKET": socket,
                    "PYTHONPATH": modules,
                    "HOME": scratch,
                }
                said = run(sys.executable, "-c", USES_A_SLICE, env=env, cwd=scratch, timeout=120).stdout
            finally:
                daemon.terminate()
                daemon.wait()
        self.assertRegex(said, r"(?s)^work .* results checked, 0 wrong, .*\nmax 5\n$")

    def test_the_tarball_goes_into_a_system_whose_directories_are_links(self):
        """As packaging/INSTALL says. Fedora and Arch have /usr/sbin as a link."""
        commands = [command for _, command in pages.run_by("package", "INSTALL")]
        with tempfile.TemporaryDirectory(prefix="gpuctl-test.") as scratch:
            usr = pathlib.Path(scratch, "usr")
            (usr / "bin").mkdir(parents=True)
            (usr / "sbin").symlink_to("bin")
            (etc := usr.parent / "etc").mkdir()
            (usr / "bin/true").touch()

            def do(command):
                here, count = re.subn(r"(?<=[ ,])/(?=(?:usr|etc)\b)", f"{usr.parent}/", command)
                self.assertGreater(count, 0)
                run("sh", "-c", here, cwd=PACKAGES)

            *install, remove = commands
            for command in install:
                do(command)
            self.assertTrue((etc / "gpuctl.toml").is_file())
            self.assertTrue((usr / "sbin").is_symlink())
            self.assertTrue((usr / "bin/gpuctld").is_file())
            left_out = {"INSTALL", "LICENSE"}
            self.assertEqual({path.name for path in usr.iterdir()} & left_out, set())
            do(remove)
            self.assertEqual({str(path.relative_to(usr)) for path in usr.rglob("*")}, {"bin", "bin/true", "sbin"})

    @unittest.skipUnless("bookworm" in SUITES, "what a newer Debian builds is for it")
    def test_old_systems_can_load_the_library_of_the_package_and_of_the_tarball(self):
        (package,), (tarball,) = PACKAGES.glob("libgpuslice0_*.deb"), PACKAGES.glob("*.tar.gz")
        with tempfile.TemporaryDirectory(prefix="gpuctl-test.") as scratch:
            run("dpkg-deb", "-x", package, f"{scratch}/package")
            os.mkdir(f"{scratch}/tarball")
            run("tar", "-xzf", tarball, "-C", f"{scratch}/tarball")
            libraries = list(pathlib.Path(scratch).rglob("libgpuslice.so.0"))
            self.assertEqual(len(libraries), 2)
            for library in libraries:
                self.assertEqual(too_new(library), [], library)

    def test_slurm_has_a_plugin(self):
        self.assertTrue(list(PACKAGES.glob("gpuctl-slurm*_*.deb")))

    def test_the_product_is_small(self):
        sizes = {}
        for package in PACKAGES.glob("*.deb"):
            done = subprocess.run(
                ["dpkg-deb", "-f", package, "Installed-Size"], capture_output=True, text=True, check=True
            )
            sizes[package.name.partition("_")[0]] = int(done.stdout)
        self.assertLessEqual(sum(sizes[name] for name in PRODUCT), MOST_KIB, sizes)


for name in SUITES:
    setattr(Packages, f"test_{name}", lambda self, suite=name: self.check(suite))

if __name__ == "__main__":
    PACKAGES = pathlib.Path(os.environ.get("GPUCTL_PACKAGES") or "/nowhere")
    BEFORE = pathlib.Path(os.environ.get("GPUCTL_PACKAGES_BEFORE") or PACKAGES)
    if not list(PACKAGES.glob("*.deb")):
        skip("no packages; scripts/package.sh --test makes them and runs this")
    if os.geteuid() != 0:
        skip("not root")
    if absent := [tool for tool in TOOLS if shutil.which(tool) is None]:
        skip(f"no {' and no '.join(absent)} here")
    unittest.main(argv=sys.argv[:1], verbosity=2)
