"""What gpuctld takes for MPS: a process of its control daemon's name, and the file that says which; and hardware queues
that programs share, as under MPS."""

import shutil
import subprocess


def start(test, pipes):
    """`pipes`: the directory that CUDA_MPS_PIPE_DIRECTORY names. It ends with the test."""
    program = shutil.copy(shutil.which("sleep"), pipes / "nvidia-cuda-mps-control")  # its name is what makes it one
    control = subprocess.Popen([program, "600"])
    test.addCleanup(control.wait)
    test.addCleanup(control.kill)
    (pipes / "nvidia-cuda-mps-control.pid").write_text(str(control.pid))


def start_with_queues(test, in_all):
    """So many that the programs of the test share."""
    pipes = test.scratch / "mps"
    pipes.mkdir()
    start(test, pipes)
    test.env["CUDA_MPS_PIPE_DIRECTORY"] = str(pipes)
    test.env["SOFTGPU_MPS_QUEUES"] = str(in_all)
