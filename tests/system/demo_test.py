#!/usr/bin/env python3
"""The demonstration runs to its end, with all results right, and leaves nothing behind."""
import re
import subprocess
import sys

import instance

SCRIPT = instance.pathlib.Path(__file__).resolve().parents[2] / "scripts/demo.sh"
LINE = re.compile(r"demo: device=\S+ alone_p99_us=(\d+) unmanaged_p99_us=(\d+) managed_p99_us=(\d+) "
                  r"batch_kept=(\d+\.\d+) mismatches=0")


class Demo(instance.SystemTest):
    def test_demo(self):
        temporary = self.scratch / "tmp"
        temporary.mkdir()
        self.env["TMPDIR"] = str(temporary)
        command = [str(SCRIPT), "--build", str(instance.BUILD), "--seconds", "4"]
        done = subprocess.run(command, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertRegex(done.stdout.splitlines()[-1], LINE)
        print(done.stdout, file=sys.stderr)
        self.assertEqual(list(temporary.iterdir()), [])


if __name__ == "__main__":
    instance.main()
