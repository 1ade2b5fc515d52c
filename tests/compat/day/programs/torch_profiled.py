# compat: torch.profiler: the kernels of the GPU are in its table and its trace, each with a time
# modules: torch
import json
import sys

import torch
from torch.profiler import ProfilerActivity, profile

ROUNDS = 30


def main():
    held = torch.ones(1 << 20, dtype=torch.float32, device="cuda")
    held.mul_(3)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        for _ in range(ROUNDS):
            held.mul_(1.5)
        torch.cuda.synchronize()
    seen.export_chrome_trace("trace.json")
    with open("trace.json", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel" and "elementwise" in event.get("name", "")]
    print("kernels", len(kernels), "with a time", sum(event["dur"] > 0 for event in kernels))
    table = [event for event in seen.key_averages() if event.key == "aten::mul_"]
    print("calls", [event.count for event in table], "time", [event.device_time_total > 0 for event in table])
    if len(kernels) != ROUNDS:
        print("the profiler saw no kernels", file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
