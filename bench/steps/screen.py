"""The screen of README.md: `gpuctl top` beside two real programs, a server and a training."""

import pathlib
import subprocess
import sys
import time

PROGRAMS = pathlib.Path("bench/corun/programs")
SECONDS, SETTLE_S, STARTS_S = 12, 4, 120


def step_screen(lab):
    """Writes screen.txt. Needs PyTorch, a GPU and measure.sh --no-mps."""
    if lab.options.rehearse:
        raise RuntimeError("no PyTorch on the software GPU")
    with lab.gpuctld(config='daemon.mps = "manage"\n'):
        lab.gpuctl("create-slice", "ls", "--priority", 50, "--reserve", 8)
        lab.gpuctl("create-slice", "batch", "--max", 100)
        started = []
        for path, program in (("ls", "resnet.py"), ("batch", "train.py")):
            started.append(lab.start(path, sys.executable, PROGRAMS / program))
        for program in started:
            lab.wait_for(lambda program=program: "READY" in program.out(), "READY", STARTS_S)
        for program in started:
            go = f"GO {time.monotonic_ns() + 10**8} 0 {SECONDS} 1\n"
            program.process.stdin.write(go.encode())
            program.process.stdin.flush()
        time.sleep(SETTLE_S)
        done = subprocess.run(
            [lab.gpuctl_path, "top", "--once"], env=lab.env, capture_output=True, text=True, check=True, timeout=30
        )
        (lab.out / "screen.txt").write_text(done.stdout, encoding="utf-8")
        for line in done.stdout.splitlines():
            yield line, "", ""
        for program in started:
            program.process.stdin.close()
