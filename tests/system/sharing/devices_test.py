"""Two GPUs: what holds for a slice holds on each by itself, and what happens on one does not touch the other."""

import re
import signal

from tests.system.harness import instance

MIB = 1 << 20
SMS = (8, 6)
MEMORY = (512 * MIB, 256 * MIB)
UUID = "GPU-67707563-746c-2d73-6f66-74677075{}"  # and the digits that make the difference
UUIDS = tuple(UUID.format(f"2d3{device}") for device in (0, 1))


def long_of(blocks):
    """A gpuslice-bench that always has something to run, and never more SMs than blocks."""
    return "work", "--blocks", blocks, "--iterations", 200, "--count", 1_000_000, "--depth", 2, "--announce"


# It wants all SMs there are, and is long enough to be evicted.
LONG = ("work", "--blocks", 2048, "--iterations", 10, "--count", 1_000_000, "--depth", 2, "--announce")


def in_pairs(sms):
    """What a program is told of so many: those of a part of the GPU."""
    return sms - sms % 2


class Devices(instance.Conversation):
    """tests/cuda/devices.cu."""

    def __init__(self, test, slice_path, **environment):
        command = [instance.GPUCTL, "run", "--slice", slice_path, instance.CUDA_PROGRAMS / "devices"]
        super().__init__(test, command, {**test.env_of_others(), **environment})

    def told(self):
        """What it is told of each device."""
        devices = self.ask("ask").rstrip(";").split(";")
        return [
            {name: value if name == "bus" else int(value) for name, value in re.findall(r"(\w+)=([\w:.]+)", device)}
            for device in devices
        ]


class TwoDevices(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.env.update(
            SOFTGPU_DEVICES="2",
            SOFTGPU_SMS=",".join(map(str, SMS)),
            SOFTGPU_MEMORY_MIB=",".join(str(size // MIB) for size in MEMORY),
        )
        self.env.pop("CUDA_VISIBLE_DEVICES", None)

    def usage_on(self, slice_path, pid, device):
        """What the daemon knows of a client's use of one GPU; nothing while it is not attached."""
        for client in self.clients(slice_path):
            for usage in client["usage"] if client["pid"] == pid else ():
                if usage["device"] == device:
                    return usage
        return {}

    def wait_usage(self, slice_path, pid, device, **expected):
        usage = {}

        def as_expected():
            usage.update(self.usage_on(slice_path, pid, device))
            return {**usage, **expected} == usage

        try:
            instance.wait_until(as_expected, f"GPU {device}: {expected}")
        except AssertionError as error:
            raise AssertionError(f"{error}, but { ({name: usage.get(name) for name in expected}) }") from None

    def bench_on(self, device, slice_path, *arguments):
        command = [instance.BENCH, "run", *arguments, "--json"]
        return self.start_in(slice_path, *command, env={**self.env, "CUDA_VISIBLE_DEVICES": device})

    def test_the_daemon_offers_both(self):
        self.start_daemon()
        devices = self.gpuctl_json("status")["devices"]
        self.assertEqual(
            [(one["index"], one["uuid"], one["sms"], one["memory_bytes"]) for one in devices],
            [(i, UUIDS[i], SMS[i], MEMORY[i]) for i in (0, 1)],
        )
        self.assertEqual({one["kind"] for one in devices}, {"software"})

    def test_a_program_that_uses_both_gets_right_results_and_its_part_of_each(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", 7)
        program = Devices(self, "s")
        self.assertEqual(program.ask("work", 5, 64, 20).split(), ["0:5", "1:5"])
        self.assertEqual(program.ask("pass"), "ok")
        for device in (0, 1):
            self.assertEqual(program.ask("begin", device, 1024, 50), "ok")
        for device, granted in ((0, 7), (1, 6)):
            self.wait_usage("s", program.pid, device, granted=granted, holding=granted)
        self.gpuctl("set", "s", "max=3")
        for device in (0, 1):
            self.wait_usage("s", program.pid, device, granted=3, holding=3)
        kernels = self.kernels_of(program, "_Z4workPjjj")
        self.assertEqual({kernel["form"] for kernel in kernels if kernel["name"] == "_Z4workPjjj"}, {"persistent"})
        self.gpuctl("set", "s", "max=none")
        for device in (0, 1):
            self.wait_usage("s", program.pid, device, granted=SMS[device])
            right, rounds = program.ask("end", device).split(" of ")
            self.assertEqual(right, rounds)
            self.assertGreater(self.usage_on("s", program.pid, device)["launches"], 5)

    def test_amounts_of_one_gpu_and_parts_hold_on_each(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", "50%,1:5", "--memory-max", "25%")
        self.gpuctl("create-slice", "ls", "--reserve", "1:2", "--reserve-mode", "strict")
        program = Devices(self, "s")
        self.assertEqual([one["memory"] for one in program.told()], [size // 4 for size in MEMORY])
        for device in (0, 1):
            self.assertEqual(program.ask("begin", device, 1024, 50), "ok")
        # On GPU 1 the reserve leaves 4 of the 5.
        for device, granted in ((0, 4), (1, 4)):
            self.wait_usage("s", program.pid, device, granted=granted, holding=granted)
        self.gpuctl("set", "s", "max=0:2")
        for device, granted in ((0, 2), (1, 4)):
            self.wait_usage("s", program.pid, device, granted=granted, holding=granted)
        before = self.call("ListSlices")
        on_gpus = next(one["on_gpus"] for one in before["slices"] if one["path"] == "s")
        has = {"memory": 0, "memory_peak": 0, "max_refusals": 0}
        for on in on_gpus:
            self.assertLessEqual({"same", "granted", *has}, on.keys())
        self.assertEqual(
            [{name: value for name, value in on.items() if name not in has} for on in on_gpus],
            [
                {
                    "device": 0,
                    "reserve": 0,
                    "max": 2,
                    "memory_max": MEMORY[0] // 4,
                    "memory_min": 0,
                    "seen": True,
                    "same": False,
                    "granted": 2,
                },
                {
                    "device": 1,
                    "reserve": 0,
                    "memory_max": MEMORY[1] // 4,
                    "memory_min": 0,
                    "seen": True,
                    "same": False,
                    "granted": 4,
                },
            ],
        )
        for device in (0, 1):
            self.assertEqual(*program.ask("end", device).split(" of "))
        program.end()

    def test_a_quota_of_one_gpu_is_shown_there_alone(self):
        self.start_daemon()
        self.gpuctl("create-slice", "q", "--quota", "40ms/100ms,1:none", "--burst", "20ms")
        shown = self.gpuctl("show", "q").stdout
        self.assertIn("quota         40ms/100ms,1:none, burst 20ms; used up 0 times", shown)
        self.assertRegex(shown, r"GPU 0: .*, quota 40ms/100ms, burst 20ms\n")
        self.assertNotRegex(shown, r"GPU 1: .*quota")
        on_gpus = self.gpuctl_json("show", "q")["slice"]["on_gpus"]
        self.assertEqual([on.get("quota") for on in on_gpus], ["40ms/100ms", None])
        refused = self.gpuctl("set", "q", "quota=1:10ms/100ms,1:20ms/100ms", check=False)
        self.assertIn("is not a quota", refused.stderr)
        self.assertIn("there is no GPU 7 here", self.gpuctl("set", "q", "quota=7:40ms/100ms").stderr)

    def test_amounts_of_one_gpu_outlast_the_daemon_and_are_saved_as_they_are_written(self):
        self.start_daemon()
        config = self.scratch / "gpuctl.toml"
        self.gpuctl("create-slice", "a", "--reserve", "25%", "--max", "6,1:none", "--memory-max", "0:100M")
        self.gpuctl("save", "a", "--config", config)
        saved = next((self.scratch / "gpuctl.toml.d").iterdir()).read_text()
        for line in ('reserve = "25%"', 'max = "6,1:none"', 'memory_max = "0:100M"'):
            self.assertIn(line + "\n", saved)
        before = self.call("GetSlice", path="a")["slice"]
        self.daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.daemon.wait(), 0, self.daemon.err())
        self.start_daemon()
        self.assertEqual(self.call("GetSlice", path="a")["slice"], before)
        tree = self.scratch / "tree.toml"
        tree.write_text(saved)
        self.assertEqual(self.gpuctl("apply", tree).stdout, "nothing to change\n")
        self.gpuctl("set", "a", "max=none", "reserve=1", "memory-max=none")
        self.assertEqual(
            self.gpuctl("apply", tree).stdout,
            "changed a: reserve 1 -> 25%, max none -> 6,1:none, memory_max none -> 0:100M\n",
        )

    def test_programs_see_the_devices_of_their_slice(self):
        self.start_daemon()
        self.gpuctl("create-slice", "a", "--devices", "1", "--reserve", 4)
        self.gpuctl("create-slice", "a/b", "--devices", f"0,{UUIDS[1]}")
        self.gpuctl("create-slice", "c", "--devices", "1,0")
        one, two = ["0000:01:00.0"], ["0000:00:00.0", "0000:01:00.0"]
        for path, own, seen in (
            ("a", None, one),
            ("a/b", None, one),
            ("a", "0,1", one),
            ("c", None, two),
            ("c", "1,0", two[::-1]),
            ("c", UUIDS[1], one),
        ):
            with self.subTest(path=path, own=own):
                program = Devices(self, path, **({} if own is None else {"CUDA_VISIBLE_DEVICES": own}))
                self.assertEqual([one["bus"] for one in program.told()], seen)
                client = next(one for one in self.clients(path) if one["pid"] == program.pid)
                self.assertEqual(len(client["usage"]), len(seen))
                program.end()
        # What a slice reserves is there for others where its programs see nothing.
        batch = Devices(self, "c")
        self.assertEqual([one["properties"] for one in batch.told()], [SMS[0], SMS[1] - 4])
        self.assertEqual(batch.ask("work", 2, 64, 10).split(), ["0:2", "1:2"])

    def test_the_library_alone_shows_a_program_the_devices_of_its_slice(self):
        self.start_daemon()
        self.gpuctl("create-slice", "a", "--devices", "1")
        env = {
            **self.env,
            "GPUCTL_SOCKET": str(self.socket),
            "GPUCTL_SLICE": "a",
            "LD_PRELOAD": str(instance.BUILD / "src/libgpuslice/libgpuslice.so.0"),
            "LD_LIBRARY_PATH": str(instance.BUILD / "softgpu"),
        }
        program = instance.Conversation(self, [instance.CUDA_PROGRAMS / "devices"], env)
        self.assertEqual(re.findall(r"bus=(\S+)", program.ask("ask")), ["0000:01:00.0"])

    def test_a_program_for_which_its_slice_has_no_device_sees_none(self):
        self.start_daemon()
        self.gpuctl("create-slice", "a", "--devices", "1")
        self.env["CUDA_VISIBLE_DEVICES"] = "0"
        ran = self.gpuctl("run", "--slice", "a", instance.BENCH, "run", *LONG, check=False)
        del self.env["CUDA_VISIBLE_DEVICES"]
        self.assertNotEqual(ran.returncode, 0)
        said = "gpuctl: run: the program sees no GPU: slice 'a' has none of CUDA_VISIBLE_DEVICES=0\n"
        self.assertIn(said, ran.stderr)
        noted = self.gpuctl("create-slice", "a/b", "--devices", "0,7")
        self.assertEqual(
            noted.stderr,
            "note: there is no GPU 7 here: what is set for it has no effect\n"
            "note: programs that start in a/b see no GPU\n",
        )
        ran = self.gpuctl("run", "--slice", "a/b", "sh", "-c", "echo [$CUDA_VISIBLE_DEVICES]")
        self.assertEqual(ran.stdout, "[]\n")
        self.assertEqual(ran.stderr, "gpuctl: run: the program sees no GPU: slice 'a/b' has none here\n")
        refused = self.gpuctl("create-slice", "b", "--devices", "0,0", check=False)
        self.assertIn("--devices: '0,0' names no GPUs; give all, or a list that names each GPU once", refused.stderr)

    def test_devices_that_are_set_hold_for_programs_that_start(self):
        self.start_daemon()
        self.gpuctl("create-slice", "a")
        first = Devices(self, "a")
        self.assertEqual(first.ask("work", 1, 64, 10).split(), ["0:1", "1:1"])
        noted = self.gpuctl("set", "a", "devices=0")
        self.assertEqual(noted.stderr, "note: 1 program in a sees GPUs that it has no more, until started again\n")
        self.assertEqual(first.ask("work", 1, 64, 10).split(), ["0:1", "1:1"])
        second = Devices(self, "a")
        self.assertEqual(second.ask("work", 1, 64, 10).split(), ["0:1"])
        shown = self.gpuctl("show", "a").stdout
        self.assertIn("devices       0\n", shown)
        self.assertIn("by GPU        GPU 0: reserve 0, max none, memory max none\n", shown)
        self.assertIn("              GPU 1: its programs do not see it\n", shown)
        first.end()
        self.assertEqual(self.gpuctl("set", "a", "weight=7").stderr, "")
        # It is kept as any other setting.
        config = self.scratch / "gpuctl.toml"
        self.gpuctl("save", "a", "--config", config)
        saved = next((self.scratch / "gpuctl.toml.d").iterdir()).read_text()
        self.assertIn('devices = "0"\n', saved)
        self.gpuctl("set", "a", "devices=all")
        tree = self.scratch / "tree.toml"
        tree.write_text(saved)
        self.assertEqual(self.gpuctl("apply", tree).stdout, "changed a: devices all -> 0 (1 program)\n")

    def test_what_does_not_fit_one_gpu_is_refused_by_its_name(self):
        self.start_daemon()
        self.gpuctl("create-slice", "a", "--reserve", "1:4")
        refused = self.gpuctl("create-slice", "b", "--reserve", "1:3", check=False)
        self.assertEqual(refused.stderr, "gpuctl: reserve: 'b' asks for 3 SMs of GPU 1 and its parent can give 2\n")
        self.gpuctl("create-slice", "b", "--reserve", "0:8")
        noted = self.gpuctl("create-slice", "c", "--max", "2:3")
        self.assertEqual(noted.stderr, "note: there is no GPU 2 here: what is set for it has no effect\n")

    def test_programs_on_different_devices_do_not_hinder_each_other(self):
        self.start_daemon()
        self.gpuctl("create-slice", "batch")
        self.gpuctl("create-slice", "ls", "--reserve", 4, "--reserve-hold", "600s", "--priority", 10)
        batch = self.bench_on("0", "batch", *LONG)
        batch.wait_started()
        self.wait_usage("batch", batch.pid, 0, granted=SMS[0], holding=SMS[0])
        other = self.bench_on("1", "ls", *LONG)
        other.wait_started()
        self.wait_usage("ls", other.pid, 1, granted=SMS[1], holding=SMS[1])
        usage = self.usage_on("batch", batch.pid, 0)
        self.assertEqual((usage["granted"], usage["evictions"]), (SMS[0], 0))
        self.assertEqual(self.usage_on("ls", other.pid, 1)["evictions"], 0)
        # On the same one they do, so this would have been seen.
        near = self.bench_on("0", "ls", *long_of(4))
        near.wait_started()
        self.wait_usage("batch", batch.pid, 0, granted=4, holding=4)
        self.assertEqual(self.usage_on("ls", other.pid, 1)["granted"], SMS[1])
        self.assertEqual(self.usage_on("ls", other.pid, 1)["evictions"], 0)
        for program in (near, other, batch):
            self.assertRightResults(program.stop())

    def test_reserves_and_limits_count_on_each(self):
        self.start_daemon()
        self.gpuctl("create-slice", "ls", "--reserve", 2, "--reserve-mode", "strict")
        self.gpuctl("create-slice", "batch")
        self.gpuctl("create-slice", "batch/limited", "--max", 5)
        batch = Devices(self, "batch")
        for device in (0, 1):
            batch.ask("begin", device, 1024, 50)
        for device in (0, 1):
            self.wait_usage("batch", batch.pid, device, granted=SMS[device] - 2, holding=SMS[device] - 2)
            self.assertEqual(*batch.ask("end", device).split(" of "))
        limited = Devices(self, "batch/limited")
        for device in (0, 1):
            limited.ask("begin", device, 1024, 50)
        for device in (0, 1):
            self.wait_usage("batch/limited", limited.pid, device, granted=min(5, SMS[device] - 2))
        # The reserve of one GPU is not lost where it is used on the other.
        reserved = self.bench_on("1", "ls", *long_of(2))
        reserved.wait_started()
        self.wait_usage("ls", reserved.pid, 1, granted=2)
        self.wait_usage("batch/limited", limited.pid, 0, granted=5)
        for device in (0, 1):
            self.assertEqual(*limited.ask("end", device).split(" of "))
        self.assertRightResults(reserved.stop())

    def test_an_active_reserve_is_lent_where_its_slice_is_not_active(self):
        self.start_daemon()
        self.gpuctl("create-slice", "ls", "--reserve", 2, "--reserve-hold", "600s")
        self.gpuctl("create-slice", "batch")
        batch = Devices(self, "batch")
        for device in (0, 1):
            batch.ask("begin", device, 1024, 50)
        for device in (0, 1):
            self.wait_usage("batch", batch.pid, device, granted=SMS[device])
        active = Devices(self, "ls", CUDA_VISIBLE_DEVICES="1")
        self.assertEqual(active.ask("work", 1, 4, 10).split(), ["0:1"])
        self.wait_usage("batch", batch.pid, 1, granted=SMS[1] - 2)
        self.assertEqual(self.usage_on("batch", batch.pid, 0)["granted"], SMS[0])
        for device in (0, 1):
            self.assertEqual(*batch.ask("end", device).split(" of "))

    def test_a_kernel_without_another_form_is_confined_on_each(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", 4)
        program = Devices(self, "s", SOFTGPU_WARP_INSTRUCTION_NS="0")
        for most in (4, 2):
            self.gpuctl("set", "s", f"max={most}")
            for device in (0, 1, 0):
                instance.wait_until(lambda: program.ask("where", device) == str(most), f"{most} SMs on GPU {device}")
        kernels = [
            kernel for kernel in self.kernels_of(program, "_Z10where_am_iPj") if kernel["name"] == "_Z10where_am_iPj"
        ]
        self.assertEqual({kernel["form"] for kernel in kernels}, {"opaque"})
        self.gpuctl("set", "s", "max=none")
        for device in (0, 1):
            instance.wait_until(lambda: program.ask("where", device) == str(SMS[device]), f"all SMs of GPU {device}")

    def test_a_program_that_sees_one_is_governed_by_that_one(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", 7, "--memory-max", "300M")
        for visible, devices in (("1", [1]), (UUIDS[1], [1]), ("1,0", [1, 0]), ("0", [0])):
            with self.subTest(visible):
                program = Devices(self, "s", CUDA_VISIBLE_DEVICES=visible)
                told = program.told()
                self.assertEqual([one["bus"] for one in told], [f"0000:{device:02}:00.0" for device in devices])
                self.assertEqual(
                    [one["properties"] for one in told], [in_pairs(min(7, SMS[device])) for device in devices]
                )
                self.assertEqual(
                    [one["memory"] for one in told], [min(300 * MIB, MEMORY[device]) for device in devices]
                )
                for ordinal, device in enumerate(devices):
                    program.ask("begin", ordinal, 1024, 50)
                    self.wait_usage("s", program.pid, device, granted=min(7, SMS[device]))
                client = next(one for one in self.clients("s") if one["pid"] == program.pid)
                self.assertEqual(sorted(one["device"] for one in client["usage"]), sorted(devices))
                for ordinal in range(len(devices)):
                    self.assertEqual(*program.ask("end", ordinal).split(" of "))
                program.end()

    def test_what_a_program_is_told_is_of_each(self):
        self.start_daemon()
        self.gpuctl("create-slice", "strict", "--reserve", 1, "--reserve-mode", "strict")
        for path, most, sms in (("high", 7, (6, 4)), ("low", 3, (2, 2))):
            with self.subTest(path):
                self.gpuctl("create-slice", path, "--max", most)
                program = Devices(self, path)
                for device, told in enumerate(program.told()):
                    for name in ("properties", "attribute", "grid"):
                        self.assertEqual(told[name], sms[device], (device, told))
                said = self.gpuctl("explain", program.pid).stdout
                for device in (0, 1):
                    found = re.findall(rf"^in force on GPU {device}: .*\n(?:  .*\n)*?  told of (\d+) SMs$", said, re.M)
                    self.assertEqual(found, [str(sms[device])], said)
                    self.assertEqual(self.usage_on(path, program.pid, device)["sms_told"], sms[device])
                self.assertEqual(program.ask("work", 2, 64, 10).split(), ["0:2", "1:2"])

    def test_memory_is_limited_on_each(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--memory-max", "100M")
        first, second = Devices(self, "s"), Devices(self, "s")
        self.assertEqual([(one["total"], one["free"]) for one in first.told()], [(100 * MIB, 100 * MIB)] * 2)
        self.assertEqual(first.ask("hold", 0, 60 * MIB), "ok")
        self.assertEqual(second.ask("hold", 0, 60 * MIB), "refused")
        self.assertEqual(second.ask("hold", 1, 70 * MIB), "ok")
        self.assertEqual(first.ask("hold", 1, 60 * MIB), "refused")
        self.assertEqual([one["free"] for one in first.told()], [40 * MIB, 30 * MIB])
        self.assertEqual([self.usage_on("s", first.pid, device)["memory"] for device in (0, 1)], [60 * MIB, 0])
        self.assertEqual([self.usage_on("s", second.pid, device)["memory"] for device in (0, 1)], [0, 70 * MIB])
        self.assertEqual(first.ask("free", 0), "ok")
        self.assertEqual(second.ask("hold", 0, 60 * MIB), "ok")
        self.assertEqual([one["free"] for one in first.told()], [40 * MIB, 30 * MIB])

    def test_show_and_top_name_the_right_one(self):
        self.start_daemon()
        self.gpuctl("create-slice", "s", "--max", 3)
        first, second = self.bench_on("0", "s", *LONG), self.bench_on("1", "s", *LONG)
        for device, program in enumerate((first, second)):
            program.wait_started()
            self.wait_usage("s", program.pid, device, granted=3, holding=3)

        def rows(text, column):
            """What stands in a column for each of the programs."""
            lines = text.splitlines()
            head = next(line.split() for line in lines if line.split()[:1] == ["PID"])
            found = {
                int(line.split()[0]): line.split()[head.index(column)] for line in lines if re.match(r" *\d+ ", line)
            }
            return [found[program.pid] for program in (first, second)]

        self.assertEqual(rows(self.gpuctl("show", "s").stdout, "GPU"), ["0", "1"])
        top = self.gpuctl("top", "--once").stdout
        self.assertEqual(rows(top, "GPU"), ["0", "1"])
        for device in (0, 1):
            self.assertRegex(top, rf"GPU {device}  gpuctl software GPU .* 3 of {SMS[device]} SMs granted")
        for program in (first, second):
            self.assertRightResults(program.stop())

    def test_a_daemon_of_one_of_them_leaves_the_other_alone(self):
        self.start_daemon(config=instance.ALWAYS_REWRITTEN + "[[device]]\nindex = 1\n")
        self.assertEqual(
            [(one["index"], one["uuid"]) for one in self.gpuctl_json("status")["devices"]], [(1, UUIDS[1])]
        )
        self.gpuctl("create-slice", "s", "--max", 3, "--memory-max", "100M")
        program = Devices(self, "s")
        self.assertEqual([one["properties"] for one in program.told()], [SMS[0], in_pairs(3)])
        self.assertEqual([one["total"] for one in program.told()], [MEMORY[0], 100 * MIB])
        self.assertEqual(program.ask("work", 3, 64, 20).split(), ["0:3", "1:3"])
        program.ask("begin", 1, 1024, 50)
        self.wait_usage("s", program.pid, 1, granted=3, holding=3)  # by its number in the machine
        self.assertIn("in force on GPU 1: ", self.gpuctl("explain", program.pid).stdout)
        self.assertRegex(
            self.gpuctl("top", "--once").stdout, rf"GPU 1  gpuctl software GPU .* 3 of {SMS[1]} SMs granted"
        )
        self.assertEqual(program.ask("hold", 0, 200 * MIB), "ok")
        self.assertEqual(program.ask("hold", 1, 101 * MIB), "refused")
        self.assertEqual(*program.ask("end", 1).split(" of "))


if __name__ == "__main__":
    instance.main()
