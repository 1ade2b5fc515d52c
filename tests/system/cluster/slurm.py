"""A Slurm of our own: munged, slurmctld and two slurmd on this machine, each "node" with a software GPU and a gpuctld.

It lives in a process-id namespace, because slurmd's children outlive it: enter() goes into one.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys

from tests.system.harness import instance

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "scancel", "squeue")
PLUGIN = instance.BUILD / "src/slurm/gpuctl.so"
LIBRARY = instance.BUILD / "src/libgpuslice/libgpuslice.so"
NODES = ("n1", "n2")
SHARDS = 8
INSIDE = "GPUCTL_TEST_OUTSIDE_PID_NAMESPACE"  # its value: the namespace from which we came
SKIPPED = 77


def obstacle():
    """Why there can be no Slurm here, or None."""
    if os.geteuid() != 0:
        return "not root"
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"no {', '.join(missing)} (Debian: slurmctld, slurmd, slurm-client, munge)"
    if not PLUGIN.exists():
        return "the plugin is not built (Debian: libslurm-dev)"
    if subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], capture_output=True).returncode != 0:
        return "no namespaces may be made here"
    return None


def enter(module):
    """Goes on as the same test in a namespace of its own. Skips the test where that is of no use."""
    if INSIDE in os.environ:
        return
    reason = obstacle()
    if reason is not None:
        print(f"skipped: {reason}", file=sys.stderr)
        sys.exit(SKIPPED)
    os.environ[INSIDE] = os.readlink("/proc/self/ns/pid")
    command = [
        "unshare",
        "--pid",
        "--fork",
        "--mount-proc",
        "--kill-child",
        sys.executable,
        "-m",
        module,
        *sys.argv[1:],
    ]
    os.execvp(command[0], command)


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class SlurmTest(instance.SystemTest):
    """Has a Slurm with two nodes. `arguments`: of the plugin."""

    arguments = f"shards={SHARDS} slices=batch admin-comment"

    def setUp(self):
        super().setUp()
        self.scratch.chmod(0o755)
        self.out = self.scratch / "out"
        for path in (self.out, *(self.scratch / name for name in ("state", "spool", "munge"))):
            path.mkdir()
        self.out.chmod(0o777)  # jobs are other users'
        self.addCleanup(self.end_slurm)
        self.env["PATH"] = f"{instance.GPUCTL.parent}:{os.environ['PATH']}"
        self.env["SLURM_CONF"] = str(self.scratch / "slurm.conf")
        self.sockets = {node: self.scratch / f"gpuctld-{node}" for node in NODES}
        self.daemons = {node: self.start_node_daemon(node) for node in NODES}
        self.start_slurm()

    def start_node_daemon(self, node):
        """The daemon of a node; instance's own means of asking then ask this one."""
        self.socket, self.state = self.sockets[node], self.scratch / f"state-{node}"
        self.env["GPUCTL_SOCKET"] = str(self.socket)
        return self.start_daemon(config=instance.ALWAYS_REWRITTEN + 'daemon.socket_mode = "0666"\n')

    def on(self, node):
        """Whom call() and gpuctl() ask from now on."""
        self.socket, self.daemon = self.sockets[node], self.daemons[node]
        self.env["GPUCTL_SOCKET"] = str(self.socket)
        return self

    def start_slurm(self):
        where, host = self.scratch, socket.gethostname()
        (controller, first, second) = free_ports(3)
        gpu = where / "gpu0"
        os.mknod(gpu, 0o666 | 0o020000, os.makedev(1, 3))
        gpu.chmod(0o666)
        key = where / "munge/key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        (where / "munge").chmod(0o755)
        (where / "gres.conf").write_text(f"Name=gpu File={gpu}\nName=shard Count={SHARDS} File={gpu}\n")
        self.configure_plugin(self.arguments)
        nodes = "".join(
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=8 Gres=gpu:1,shard:{SHARDS}\n"
            for node, port in zip(NODES, (first, second), strict=True)
        )
        (where / "slurm.conf").write_text(
            f"""ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
AuthType=auth/munge
AuthInfo=socket={where}/munge/socket
SlurmUser=root
StateSaveLocation={where}/state
SlurmdSpoolDir={where}/spool/%n
SlurmctldPidFile={where}/slurmctld.pid
SlurmdPidFile={where}/%n.pid
SlurmctldLogFile={where}/slurmctld.log
SlurmdLogFile={where}/%n.log
PlugStackConfig={where}/plugstack.conf
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu,shard
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
{nodes}PartitionName=all Nodes={",".join(NODES)} Default=YES State=UP
"""
        )
        munge = [f"--{name}={where}/munge/{name.removesuffix('-file')}" for name in ("socket", "key-file", "pid-file")]
        munge += [f"--{name}={where}/munge/{name.removesuffix('-file')}" for name in ("log-file", "seed-file")]
        self.start("munged", "--foreground", "--force", *munge)
        instance.wait_until((where / "munge/socket").exists, "munged", told=self.said)
        self.start("slurmctld", "-D")
        self.slurmds = {node: self.start("slurmd", "-D", "-N", node) for node in NODES}
        instance.wait_until(
            lambda: self.slurm("sinfo", "-h", "-o", "%D %t", check=False).stdout == f"{len(NODES)} idle\n",
            "the nodes to be idle",
            told=self.said,
        )

    def configure_plugin(self, arguments):
        """What holds for the next step, command, prolog and epilog."""
        (self.scratch / "plugstack.conf").write_text(
            f"required {PLUGIN} socket={self.scratch}/gpuctld-%n library={LIBRARY} {arguments}\n"
        )

    def said(self):
        """The ends of Slurm's logs, for an error."""
        logs = [self.scratch / "slurmctld.log", *(self.scratch / f"{node}.log" for node in NODES)]
        texts = [path.read_text(errors="replace")[-1500:] for path in logs if path.exists()]
        return "\n".join(texts)

    def end_slurm(self):
        """Before the scratch directory goes. A slurmstepd is nobody's child: it is found by its name, in a namespace
        that has no others."""
        self.end_all()
        if os.environ[INSIDE] == os.readlink("/proc/self/ns/pid"):
            raise AssertionError("this is not the namespace of this test alone")
        for pid in self.steps():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def steps(self):
        """Process ids of slurmstepd."""
        for path in pathlib.Path("/proc").glob("[0-9]*/comm"):
            with contextlib.suppress(OSError):
                if path.read_text() == "slurmstepd\n":
                    yield int(path.parent.name)

    def slurm(self, *command, uid=None, check=True, **env):
        """Runs one of Slurm's commands to its end."""
        identity = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        done = subprocess.run(
            [str(word) for word in command],
            env={**self.env, **env},
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=instance.PATIENCE_S * instance.SLOWER,
            **identity,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{command}: {done.returncode}: {done.stderr}{done.stdout}\n{self.said()}")
        return done

    def script(self, *lines):
        """A file whose programs run on the software GPU of their node, of which each user has a table."""
        path = self.scratch / f"job{len(list(self.scratch.glob('job*.sh')))}.sh"
        gpu = f"export SOFTGPU_TABLE={self.out}/softgpu-$SLURMD_NODENAME-$(id -u) LD_LIBRARY_PATH={instance.SOFTGPU}"
        path.write_text("\n".join(["#!/bin/sh", gpu, *lines, ""]))
        path.chmod(0o755)
        return path

    def submit(self, *options, lines, uid=None):
        """A batch job of these lines: its number. output_of() has what it prints."""
        done = self.slurm("sbatch", "--parsable", "-o", self.out / "job-%j.out", *options, self.script(*lines), uid=uid)
        return int(done.stdout)

    def output_of(self, job):
        path = self.out / f"job-{job}.out"
        return path.read_text(errors="replace") if path.exists() else ""

    def job(self, job):
        """What scontrol says of it, by name."""
        words = self.slurm("scontrol", "show", "job", job, "--oneliner").stdout
        return dict(word.split("=", 1) for word in words.split() if "=" in word)

    def wait_for_job(self, job, *states):
        def is_there():
            state = self.job(job)["JobState"]
            if state == "FAILED" and state not in states:
                raise AssertionError(f"job {job} failed: {self.output_of(job)}\n{self.said()}")
            return state in states

        instance.wait_until(is_there, f"job {job} to be {states}", interval=0.1, told=self.said)

    def slices(self, node):
        """Of a node, by path."""
        return {one["path"]: one for one in self.on(node).call("ListSlices")["slices"]}
