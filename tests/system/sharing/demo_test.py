"""The demonstration shows what it promises, with all results right, and leaves nothing behind.

How much is gained is for whoever looks at it. Here the order counts, which a busy machine does not change."""

import re
import subprocess
import sys

from tests.system.harness import instance, pages

ROOT = instance.pathlib.Path(__file__).resolve().parents[3]
LINE = re.compile(
    r"demo: device=\S+ alone_p99_us=\d+ unmanaged_p99_us=(?P<unmanaged>\d+) "
    r"priorities_p99_us=\d+ priorities_batch=\d+\.\d+ "
    r"managed_p99_us=(?P<managed>\d+) managed_batch=(?P<kept>\d+\.\d+) "
    r"limited_p99_us=\d+ limited_batch=(?P<limited>\d+\.\d+) checked=\d+ mismatches=(?P<mismatches>\d+)"
)


class Demo(instance.SystemTest):
    def test_demo(self):
        temporary = self.scratch / "tmp"
        temporary.mkdir()
        self.env["TMPDIR"] = str(temporary)
        ((_, of_readme),) = pages.run_by("demo")
        command = [str(ROOT / of_readme), "--build", str(instance.BUILD), "--seconds", "2"]
        done = subprocess.run(
            command, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200
        )
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        print(done.stdout, file=sys.stderr)
        line = LINE.fullmatch(done.stdout.splitlines()[-1])
        self.assertIsNotNone(line, done.stdout)
        self.assertEqual(line["mismatches"], "0")
        self.assertEqual(list(temporary.iterdir()), [])
        self.assertLess(int(line["managed"]), int(line["unmanaged"]))
        self.assertGreater(float(line["kept"]), 0)
        self.assertGreater(float(line["limited"]), 0)
        self.assertRegex(done.stderr, r"while both run: gpuctl set batch max=\d+")


if __name__ == "__main__":
    instance.main()
