# compat: a program that asks for its GPU: NVML, nvidia-smi, PyTorch; what it is told of its SMs is not among that
# modules: torch pynvml
import subprocess

import pynvml
import torch


def main():
    held = torch.arange(1 << 20, dtype=torch.int64, device="cuda")
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    print("NVML", pynvml.nvmlDeviceGetCount(), pynvml.nvmlDeviceGetName(handle), memory.total, memory.used > 0)
    print("clock", pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM) > 0)
    pynvml.nvmlShutdown()
    for question in (["-L"], ["--query-gpu=name,memory.total", "--format=csv,noheader"]):
        done = subprocess.run(["nvidia-smi", *question], capture_output=True, text=True, check=False)
        print("nvidia-smi", done.returncode, done.stdout.strip(), done.stderr.strip())
    free, total = torch.cuda.mem_get_info()
    print("PyTorch", torch.cuda.device_count(), torch.cuda.get_device_name(), total, 0 < free < total)
    print("capability", torch.cuda.get_device_capability(), "sum", held.sum().item())


if __name__ == "__main__":
    main()
