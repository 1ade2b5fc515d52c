"""What gpuctld takes for MPS: a process of its control daemon's name, and the file that says which."""

import shutil
import subprocess


def start(test, pipes):
    """`pipes`: the directory that CUDA_MPS_PIPE_DIRECTORY names. It ends with the test."""
    program = shutil.copy(shutil.which("sleep"), pipes / "nvidia-cuda-mps-control")  # its name is what makes it one
    control = subprocess.Popen([program, "600"])
    test.addCleanup(control.wait)
    test.addCleanup(control.kill)
    (pipes / "nvidia-cuda-mps-control.pid").write_text(str(control.pid))
