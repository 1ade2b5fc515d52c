"""Containers of a real podman, with images made of files of this machine and devices of a directory of their own.

Everything lies in the test's scratch directory, and the mounts in a mount namespace that ends with the test. Nothing is
downloaded: an image with glibc has a shell, a few programs and the libraries that they need; one with musl has busybox.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tarfile

CDI = pathlib.Path("/etc/cdi")  # where every podman looks
SUBORDINATE_IDS = (pathlib.Path("/etc/subuid"), pathlib.Path("/etc/subgid"))
PASSWD = pathlib.Path("/etc/passwd")
MUSL = pathlib.Path("/lib/ld-musl-x86_64.so.1")
PROGRAMS = ("sh", "cat", "env", "grep", "id", "sleep")
PATIENCE_S = 120
USER = 1234  # for podman without root; nobody has to know it
SUBORDINATE = 300000  # the first of its ids in containers
MUSL_PROGRAM = '#include <stdio.h>\nint main(void) { return puts("it ran") < 0; }\n'


def why_not():
    """Why no container can run here; "" if one can."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [name for name in ("podman", "runc", "unshare", "nsenter") if not shutil.which(name)]
    return f"no {', '.join(missing)} here" if missing else ""


def why_not_rootless():
    """Why a user other than root can run none; "" if one can."""
    if why := why_not():
        return why
    if not shutil.which("newuidmap") or not SUBORDINATE_IDS[0].exists():
        return "no newuidmap here"
    tried = subprocess.run(
        ["unshare", "--user", "true"], user=USER, group=USER, extra_groups=[], stderr=subprocess.PIPE, text=True
    )
    return tried.stderr.strip()


def libraries_of(program):
    """With the dynamic linker, by the names under which they are searched for."""
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(/\S+) \(0x", listed)


class Podman:
    """`devices` is a directory; what lies there when a container starts is what podman finds."""

    as_user = ()  # what begins the command of another user than root

    def __init__(self, test, devices, seen=None):
        """`seen` are files that have others' places in the mount namespace."""
        self.scratch = test.scratch
        self.place = test.scratch
        if not CDI.exists():
            CDI.mkdir()
            test.addCleanup(CDI.rmdir)
        mounts = {CDI: devices, **(seen or {})}
        binds = [f"mount --bind {real} {path}" for path, real in mounts.items()]
        script = " && ".join([*binds, "echo ready", "exec sleep 100000"])
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", script], stdout=subprocess.PIPE, text=True
        )
        test.addCleanup(self.end)
        assert self.holder.stdout.readline() == "ready\n"

    def end(self):
        self.do("rm", "--all", "--force", "--time", "0", check=False)
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()

    def command(self, *arguments):
        place = ("--root", self.place / "storage", "--runroot", self.place / "runroot", "--storage-driver", "vfs")
        how = ("--runtime", "runc", "--cgroup-manager", "cgroupfs", "--events-backend", "none")
        nsenter = ("nsenter", f"--mount=/proc/{self.holder.pid}/ns/mnt", "--wdns=/")
        return [str(part) for part in (*nsenter, *self.as_user, "podman", *place, *how, *arguments)]

    def do(self, *arguments, check=True):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert not check or done.returncode == 0, f"podman {' '.join(map(str, arguments))}: {done.stderr}{done.stdout}"
        return done

    def run(self, *arguments, check=True):
        """podman run, below what a machine of this kind allows."""
        limits = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000", "--network", "none")
        return self.do("run", *limits, *arguments, check=check)

    def glibc_image(self, name, *programs):
        """With PROGRAMS in /usr/bin, and others where they lie."""
        files = {path: path for program in programs for path in (str(program), *libraries_of(program))}
        for program in PROGRAMS:
            real = shutil.which(program)
            files |= {f"/usr/bin/{program}": real} | {path: path for path in libraries_of(real)}
        self.image(name, files)

    def musl_image(self, name):
        """With the program /bin/it_ran, for musl's dynamic linker, and busybox's shell, which is linked statically."""
        source, program = self.scratch / "it_ran.c", self.scratch / "it_ran"
        source.write_text(MUSL_PROGRAM)
        subprocess.run(["musl-gcc", str(source), "-o", str(program)], check=True, timeout=PATIENCE_S)
        busybox = shutil.which("busybox")
        self.image(name, {"/bin/it_ran": program, str(MUSL): MUSL.resolve(), "/bin/sh": busybox, "/bin/cat": busybox})

    def image(self, name, files):
        archive = self.scratch / f"{name}.tar"
        with tarfile.open(archive, "w") as tar:
            for path, real in files.items():
                tar.add(pathlib.Path(real).resolve(), arcname=path.lstrip("/"))
        self.do("import", archive, name)
        archive.unlink()


class Rootless(Podman):
    """Of the user USER, who has a name, a home and ids for containers in this mount namespace alone."""

    def __init__(self, test, devices):
        home = test.scratch / "home"
        home.mkdir(mode=0o700)
        os.chown(home, USER, USER)
        passwd, ids = test.scratch / "passwd", test.scratch / "subordinate"
        passwd.write_text(f"{PASSWD.read_text()}somebody:x:{USER}:{USER}::{home}:/bin/sh\n")
        ids.write_text(f"somebody:{SUBORDINATE}:65536\n")
        super().__init__(test, devices, {PASSWD: passwd, **dict.fromkeys(SUBORDINATE_IDS, ids)})
        self.place = home
        user = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
        self.as_user = (*user, "env", f"HOME={home}", f"XDG_RUNTIME_DIR={home}")

    def end(self):
        super().end()
        # It keeps the user namespace between commands.
        pause = self.place / "libpod/tmp/pause.pid"
        if pause.exists():
            os.kill(int(pause.read_text()), signal.SIGKILL)
