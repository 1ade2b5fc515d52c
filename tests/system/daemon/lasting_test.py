"""Slices that last, and the whole tree at once."""

import shutil
import signal

from tests.system.harness import instance

TREE = """
[slice.batch]
max = 3
[slice."batch/train"]
weight = 7
"""
FOR_EVER = ("work", "--iterations", 30, "--blocks", 64, "--count", 1000000, "--announce")


class Lasting(instance.SystemTest):
    def paths(self):
        return [one["path"] for one in self.call("ListSlices")["slices"]]

    def slice(self, path):
        return self.call("GetSlice", path=path)["slice"]

    def end_daemon(self):
        self.daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.daemon.wait(), 0, self.daemon.err())

    def test_what_is_saved_is_there_after_a_boot(self):
        self.start_daemon()
        config = self.scratch / "gpuctl.toml"
        self.gpuctl("create-slice", "a", "--max", 5, "--weight", 50)
        self.gpuctl("create-slice", "a/b", "--memory-max", "1G")
        self.gpuctl("create-slice", "c")
        self.gpuctl("save", "--config", config)
        self.gpuctl("delete-slice", "c")
        self.gpuctl("set", "a", "max=none")
        self.gpuctl("save", "--config", config)
        before = {path: self.slice(path) for path in self.paths()}
        self.end_daemon()
        shutil.rmtree(self.state)  # as a boot does
        self.start_daemon()
        self.assertEqual({path: self.slice(path) for path in self.paths()}, before)
        self.assertEqual(self.paths(), ["/", "a", "a/b"])

    def test_what_is_set_after_it_was_saved_lasts_over_a_crash(self):
        self.start_daemon()
        config = self.scratch / "gpuctl.toml"
        self.gpuctl("create-slice", "batch", "--max", 4, "--persist", "--config", config)
        for most in (1, 2):
            self.gpuctl("set", "batch", f"max={most}")
            self.gpuctl("freeze", "batch")
            self.daemon.kill()
            self.start_daemon()
            slice_now = self.slice("batch")
            self.assertEqual((slice_now["max"], slice_now["frozen"]), (most, "yes"))
            self.gpuctl("thaw", "batch")
            self.gpuctl("set", "batch", "max=3")
            self.gpuctl("save", "--config", config)

    def test_a_group_from_which_a_slice_was_taken_does_not_get_it_back(self):
        of_a_group = instance.ALWAYS_REWRITTEN + "[slice.ml]\nowner_uid = 1000\nowner_gid = 44\n"
        self.start_daemon(config=of_a_group)
        self.assertEqual(self.slice("ml")["owner_gid"], 44)
        self.gpuctl("set", "ml", "owner=4000000001")  # whose group nobody knows
        before = self.slice("ml")
        self.assertEqual((before["owner_uid"], before["owner_gid"]), (4000000001, -1))
        self.gpuctl("save", "--config", self.scratch / "gpuctl.toml")
        self.daemon.process.send_signal(signal.SIGHUP)
        instance.wait_until(lambda: "the configuration was read again" in self.daemon.err(), "a reload")
        self.assertEqual(self.slice("ml"), before)
        self.end_daemon()
        shutil.rmtree(self.state)  # as a boot does
        self.start_daemon(config=of_a_group)
        self.assertEqual(self.slice("ml"), before)

    def test_a_tree_is_applied_under_a_running_program_or_not_at_all(self):
        self.start_daemon()
        for path in ("batch", "gone"):
            self.gpuctl("create-slice", path)
        program = self.start_bench("batch", *FOR_EVER)
        program.wait_started()
        tree = self.scratch / "tree.toml"
        tree.write_text(TREE)
        said = self.gpuctl("apply", tree, "--dry-run").stdout
        self.assertEqual(
            said,
            "would delete gone\nwould change batch: max none -> 3 (1 program)\nwould create batch/train: weight 7\n",
        )
        self.assertEqual(self.paths(), ["/", "batch", "gone"])
        tree.write_text("[slice.other]\n")
        refused = self.gpuctl("apply", tree, check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertRegex(refused.stderr, r"it has 1 running program: \d+ .*gpuslice-bench .*; nothing is changed")
        self.assertEqual(self.paths(), ["/", "batch", "gone"])
        tree.write_text(TREE)
        self.gpuctl("apply", tree)
        self.assertEqual(self.paths(), ["/", "batch", "batch/train"])
        self.assertEqual(self.slice("batch")["max"], 3)
        self.assertRightResults(program.stop())


if __name__ == "__main__":
    instance.main()
