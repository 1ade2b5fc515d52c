"""A short kernel waits for all blocks of a batch kernel that came before it when nobody manages the GPU, and not in a
slice with a reserve. The blocks themselves say when they began."""

from tests.system.harness import instance, slice_shell

SHORT = (8, 1)  # blocks and steps
AT_ONCE = 8 * instance.SMS  # blocks; each says when it began a moment after it was placed


class HeadOfLine(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.start_daemon()
        self.gpuctl("create-slice", "ls", "--reserve", 2, "--reserve-mode", "strict")
        self.gpuctl("create-slice", "batch")

    def shell_in(self, slice_path):
        run = [instance.GPUCTL, "run", "--slice", slice_path] if slice_path else ["env", "-u", "GPUCTL_SOCKET"]
        shell = slice_shell.SliceShell(self, run)
        shell.do("init")
        return shell

    def both(self, ls_slice, batch_slice):
        """The programs, once a batch kernel of 10 s runs and a short one was launched behind it."""
        ls, batch = self.shell_in(ls_slice), self.shell_in(batch_slice)
        batch.do("launch", 0, *slice_shell.LONG)
        instance.wait_until(lambda: batch.records(0), "the batch kernel to begin")
        ls.do("launch", 0, *SHORT)
        return ls, batch

    def wait_for_short(self, ls):
        instance.wait_until(lambda: len(ls.records(0)) == SHORT[0], "the short kernel to run")

    def test_a_reserve_lets_the_short_kernel_begin_at_once(self):
        ls, batch = self.both("ls", "batch")
        self.wait_for_short(ls)
        self.assertLess(len(batch.records(0)), slice_shell.LONG[0], "the batch kernel was too short for this test")
        batch.finish(0)

    def test_without_slices_it_waits_for_the_last_blocks(self):
        ls, batch = self.both(None, None)
        batch.finish(0)
        self.wait_for_short(ls)
        begun = sorted(record.start_ns for record in batch.records(0))
        self.assertEqual(len(begun), slice_shell.LONG[0])
        self.assertGreater(min(record.start_ns for record in ls.records(0)), begun[-AT_ONCE])


if __name__ == "__main__":
    instance.main()
