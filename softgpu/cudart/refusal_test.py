"""A program with the static CUDA runtime is refused in one clear line, and does not crash or hang.

usage: refusal_test.py COMMAND...
"""

import subprocess
import sys

result = subprocess.run(sys.argv[1:], stderr=subprocess.PIPE, text=True, timeout=60)
told = [line for line in result.stderr.splitlines() if "software GPU" in line]
assert result.returncode > 0, f"exit status {result.returncode}"
assert len(told) == 1, result.stderr
assert "-cudart shared" in told[0], told[0]
