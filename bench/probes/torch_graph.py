"""A graph of PyTorch's and the same work without a graph: how long each takes, and the greatest differences of results.

For each line of its input it measures once. In a slice, with `gpuctl set batch max=N` between two lines:

    gpuctl run --slice batch python3 torch_graph.py
"""

import sys
import time

import torch
from torch import nn

torch.manual_seed(1)
layers = nn.Sequential(nn.Linear(2048, 4096), nn.GELU(), nn.LayerNorm(4096), nn.Linear(4096, 2048))
layers = layers.to("cuda").bfloat16()
convolutions = nn.Sequential(nn.Conv2d(16, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 16, 3, padding=1))
convolutions = convolutions.to("cuda").half()
rows = torch.randn(4096, 2048, device="cuda", dtype=torch.bfloat16)
images = torch.randn(32, 16, 64, 64, device="cuda", dtype=torch.half)


def work():
    with torch.no_grad():
        result = rows
        for _ in range(4):
            result = layers(result)
        return result, convolutions(images)


def timed(call, count):
    """Microseconds of one."""
    began = time.perf_counter()
    for _ in range(count):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / count * 1e6


with torch.cuda.stream(torch.cuda.Stream()):
    for _ in range(3):
        work()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    of_graph = work()
print("ready", flush=True)
for _ in sys.stdin:
    graph.replay()
    torch.cuda.synchronize()
    graph_us = timed(graph.replay, 200)
    eager = work()
    torch.cuda.synchronize()
    eager_us = timed(work, 50)
    differences = [(a.float() - b.float()).abs().max().item() for a, b in zip(of_graph, eager, strict=True)]
    print(f"graph {graph_us:.0f} us, eager {eager_us:.0f} us, greatest difference", *(f"{d:.3g}" for d in differences))
    sys.stdout.flush()
