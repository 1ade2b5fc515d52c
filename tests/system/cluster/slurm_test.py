"""Slurm's jobs in slices: a real slurmctld with two nodes, and the plugin."""

import os
import shlex

from tests.system.cluster import slurm
from tests.system.harness import instance, pages
from tests.system.harness.users import NOBODY

BUSY = f"{instance.BENCH} run work --blocks 512 --iterations 10 --count 1000000 --announce --json"
PRINT = "env | grep -E '^(GPUCTL_SLICE|GPUCTL_SOCKET|LD_PRELOAD)=' | sort"


class Jobs(slurm.SlurmTest):
    def busy_job(self, *options):
        return self.submit(*options, uid=NOBODY, lines=[f"exec {BUSY}"])

    def wait_busy(self, job, node):
        """Until its program holds SMs of the node."""
        path = f"slurm/job-{job}"

        def holds():
            if path not in self.slices(node):
                return None
            usage = [one for client in self.clients(path) for one in client["usage"]]
            return sum(one["holding"] for one in usage)

        instance.wait_until(holds, f"job {job} to hold SMs", told=lambda: self.output_of(job) + self.said())

    def wait_without(self, path):
        """Until no node has the slice."""
        instance.wait_until(
            lambda: not any(path in self.slices(node) for node in slurm.NODES), f"{path} to be gone", told=self.said
        )

    def test_shards_are_a_slice_for_the_life_of_the_job(self):
        self.configure_plugin(f"{self.arguments} dcgm={self.scratch}/dcgm-%n")
        jobs = [self.busy_job("--gres=shard:6") for _ in range(3)]
        waiting = jobs[2]
        node_of = {}
        for job in jobs[:2]:
            self.wait_for_job(job, "RUNNING")
            node_of[job] = self.job(job)["NodeList"]
            self.wait_busy(job, node_of[job])
            made = self.slices(node_of[job])[f"slurm/job-{job}"]
            self.assertEqual((made["max"], made["owner_uid"]), (instance.SMS * 6 // slurm.SHARDS, NOBODY))
            self.assertEqual(made["memory_max"], self.call("GetStatus")["devices"][0]["memory_bytes"] // 8 * 6)
            self.assertLessEqual(made["granted"], made["max"])
            maps = self.scratch / f"dcgm-{node_of[job]}"
            self.assertEqual((maps / "0").read_text(), f"{job}\n")
        self.assertEqual(set(node_of.values()), set(slurm.NODES))
        self.assertEqual(self.job(waiting)["JobState"], "PENDING")

        self.slurm("scancel", jobs[0], uid=NOBODY)
        self.wait_without(f"slurm/job-{jobs[0]}")
        self.wait_for_job(waiting, "RUNNING")
        self.wait_busy(waiting, node_of[jobs[0]])
        self.assertEqual((self.scratch / f"dcgm-{node_of[jobs[0]]}/0").read_text(), f"{waiting}\n")
        for job in jobs[1:]:
            self.slurm("scancel", job, uid=NOBODY)
            self.wait_without(f"slurm/job-{job}")
            self.wait_for_job(job, "CANCELLED")

    def test_a_job_on_two_nodes_has_a_slice_on_each(self):
        script = self.script("echo $SLURMD_NODENAME $GPUCTL_SLICE", "sleep 600")
        job = self.submit("-N2", "--gres=shard:2", lines=[f"srun {script}"])
        for node in slurm.NODES:
            instance.wait_until(lambda: f"{node} slurm/job-{job}" in self.output_of(job), f"{node} to speak")  # noqa: B023
            self.assertEqual(self.slices(node)[f"slurm/job-{job}"]["max"], 2)
        self.slurm("scancel", job)
        self.wait_without(f"slurm/job-{job}")

    def test_what_a_job_did_is_in_its_comment(self):
        program = f"{instance.BENCH} run vectorAdd --count 50 --json"
        job = self.submit("--gres=shard:4", uid=NOBODY, lines=[program])
        self.wait_for_job(job, "COMPLETED")
        said = self.slurm("scontrol", "show", "job", job).stdout
        self.assertRegex(said, rf"AdminComment=gpuctl: slurm/job-{job}: max 4 SMs, 1 program, [1-9]\d* launches, ")

    def test_every_command_of_the_page(self):
        """In the order of the page: its job is ended well, and says what it did."""
        for node in slurm.NODES:
            self.on(node).gpuctl("create-slice", "batch")
        first, *lines = pages.block("slurm", "#!/bin/sh").replace("./train", BUSY).splitlines()
        gpu = self.script().read_text().splitlines()[1]
        self.write("train.sh", first, lines[0], gpu, *lines[1:])
        self.write("train", first, gpu, "echo $GPUCTL_SLICE", f"exec {instance.BENCH} run vectorAdd --count 3")
        job = None
        for _, command in pages.run_by("slurm"):
            with self.subTest(command=command):
                program = shlex.split(command)[0]
                here = f"cd {self.out} && {command.replace('123', str(job))}"

                def said():
                    return self.slurm("bash", "-c", here, uid=NOBODY, check=False)  # noqa: B023

                # The comment comes when the job has ended.
                done = instance.wait_until(
                    lambda: done if (done := said()).returncode == 0 or program != "scontrol" else None,  # noqa: B023
                    command,
                    interval=0.1,
                )
                self.assertEqual(done.returncode, 0, done.stderr + self.said())
                if program == "sbatch":
                    job = int(done.stdout.split()[-1])
                    self.wait_for_job(job, "RUNNING")
                    node = self.job(job)["NodeList"]
                    self.wait_busy(job, node)
                elif program == "srun":
                    self.assertRegex(done.stdout, r"(?m)^batch/job-\d+$")
                elif program == "scancel":
                    self.wait_without(f"slurm/job-{job}")
                    ended = f"slice slurm/job-{job}) is ended by user {NOBODY} with SIGTERM"
                    self.assertIn(ended, self.daemons[node].err())
                else:
                    self.assertRegex(done.stdout, rf"AdminComment=gpuctl: slurm/job-{job}: max 3 SMs, 1 program, ")

    def write(self, name, *lines):
        path = self.out / name
        path.write_text("\n".join([*lines, ""]))
        path.chmod(0o755)


class Options(slurm.SlurmTest):
    def srun(self, *words, **options):
        return self.slurm("srun", *words, **options)

    def test_what_a_job_asks_for(self):
        for node in slurm.NODES:
            self.on(node).gpuctl("create-slice", "batch", "--max", 6)
            self.gpuctl("create-slice", "mine", "--owner", NOBODY)
            self.gpuctl("create-slice", "theirs")
        ours = ("--gpu-slice=batch", "--gpu-sms=3", "--gpu-mem=64M")
        done = self.srun(*ours, "sh", "-c", f"{PRINT}; {instance.GPUCTL} show --json $GPUCTL_SLICE", uid=NOBODY)
        self.assertRegex(done.stdout, r"(?m)^GPUCTL_SLICE=batch/job-\d+$")
        self.assertIn('"max":3,', done.stdout)
        self.assertIn(f'"memory_max":{64 << 20},', done.stdout)
        self.assertRegex(done.stdout, r"(?m)^LD_PRELOAD=/\S+/libgpuslice\.so$")

        done = self.srun("--gpu-slice=mine", "sh", "-c", PRINT, uid=NOBODY, LD_PRELOAD="libm.so.6")
        self.assertRegex(done.stdout, r"(?m)^GPUCTL_SLICE=mine/job-\d+$")
        self.assertRegex(done.stdout, r"(?m)^LD_PRELOAD=libm\.so\.6:/\S+/libgpuslice\.so$")

        done = self.srun("--gpu-slice=theirs", "true", uid=NOBODY, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("gpuctl: slice 'theirs' is not open to jobs", done.stderr)
        done = self.srun("--gpu-slice=batch", "--gpu-latency=5ms", "true", uid=NOBODY, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("gpuctl: --gpu-latency: jobs beside this one would yield", done.stderr)
        self.srun("--gpu-slice=mine", "--gpu-latency=5ms", "true", uid=NOBODY)
        done = self.srun("--gpu-sms=many", "true", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--gpu-sms: 'many' is not a number of SMs", done.stderr)
        # What the daemon does not know it says itself.
        done = self.srun("--gpu-slice=batch", "--gpu-latency=nonsense", "true", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"gpuctl: .*latency")
        # A job that asks for nothing has nothing, not even what a job brings from the one that submitted it.
        brought = {"GPUCTL_SLICE": "slurm/job-900", "LD_PRELOAD": f"libm.so.6:{slurm.LIBRARY}"}
        done = self.srun("sh", "-c", PRINT, **brought)
        self.assertEqual(done.stdout, f"GPUCTL_SOCKET={self.socket}\nLD_PRELOAD=libm.so.6\n")

    def test_a_step_that_asks_for_less_has_a_slice_below_the_jobs(self):
        show = self.script(PRINT)
        latency = self.script(f"{instance.GPUCTL} show --json $GPUCTL_SLICE | grep -o '.latency.:.5ms.'")
        lines = [f"srun --gpu-sms=2 {show}", f"srun {show}", f"srun --gpu-latency=5ms {latency}", "echo end"]
        lines.append("sleep 600")
        job = self.submit("--gres=shard:4", uid=NOBODY, lines=lines)
        instance.wait_until(lambda: "end" in self.output_of(job), "its steps to end", told=self.said)
        said = [line for line in self.output_of(job).splitlines() if "SLICE" in line]
        self.assertEqual(said, [f"GPUCTL_SLICE=slurm/job-{job}/step-0", f"GPUCTL_SLICE=slurm/job-{job}"])
        self.assertIn('"latency":"5ms"', self.output_of(job))
        node = self.job(job)["NodeList"]
        self.assertNotIn(f"slurm/job-{job}/step-0", self.slices(node))
        self.assertIn(f"slurm/job-{job}", self.slices(node))
        self.slurm("scancel", job)

    def test_what_a_step_asks_for_bounds_no_other_on_any_node(self):
        """The batch script makes the job's slice on the first node alone."""
        show = self.script("echo $SLURMD_NODENAME $GPUCTL_SLICE")
        lines = [f"srun --gpu-sms=2 {show}", f"srun {show}", "echo end", "sleep 600"]
        job = self.submit("-N2", "--gres=shard:4", uid=NOBODY, lines=lines)
        instance.wait_until(lambda: "end" in self.output_of(job), "its steps to end", told=self.said)
        for node in slurm.NODES:
            said = [line for line in self.output_of(job).splitlines() if line.startswith(f"{node} ")]
            self.assertEqual(said, [f"{node} slurm/job-{job}/step-0", f"{node} slurm/job-{job}"])
            self.assertEqual(self.slices(node)[f"slurm/job-{job}"]["max"], instance.SMS * 4 // slurm.SHARDS)
        self.slurm("scancel", job)

    def test_without_a_daemon_only_jobs_that_ask_fail(self):
        for daemon in self.daemons.values():
            daemon.kill()
        done = self.srun("--gpu-sms=2", "true", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "gpuctl: cannot connect to .*gpuctld-n1")
        for words in ((), ("--gres=shard:2",)):
            self.assertEqual(self.srun(*words, "echo", "ran").stdout, "ran\n")
        self.assertIn("runs without a slice: cannot connect", self.said())

    def test_what_jobs_left_behind_goes_with_the_next_job(self):
        self.on("n1").gpuctl("create-slice", "slurm")
        for name in ("job-900", "job-900/below", "other"):
            self.gpuctl("create-slice", f"slurm/{name}")
        self.srun("-w", "n1", "true")
        self.assertEqual(set(self.slices("n1")), {"/", "slurm", "slurm/other"})

    def test_what_outlives_the_tasks_of_a_step_is_ended_by_the_daemon(self):
        """Before Slurm's SIGKILL, which under MPS may harm others."""
        ready = self.out / "ready"
        task = self.script(f"{BUSY} >{ready} 2>&1 &", f"until grep started {ready}; do sleep 0.1; done")
        job = self.submit("-w", "n1", lines=[f"srun --gpu-sms=2 {task}", "echo end", "sleep 600"])
        instance.wait_until(lambda: "end\n" in self.output_of(job), "the step to end", told=self.said)
        self.assertRegex(
            self.daemons["n1"].err(), rf"process \d+ \(.*, slice slurm/job-{job}\) is ended by root with SIGTERM"
        )


if __name__ == "__main__":
    slurm.enter("tests.system.cluster.slurm_test")
    os.environ.pop("SLURM_CONF", None)
    instance.main()
