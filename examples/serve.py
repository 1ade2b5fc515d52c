#!/usr/bin/env python3
"""Answers questions with a small network of PyTorch, and tells gpuctl which of its work is one request:

    gpuctl create-slice ls --priority 50 --latency 5ms
    gpuctl run --slice ls python3 serve.py
    gpuctl show ls                                  # how long its requests take

It needs the Python package gpuctl. In no slice it runs all the same, and with --tiny on the CPU, where there is no GPU.
"""

import argparse
import time

import torch
from torch import nn

import gpuctl


def main():
    parser = argparse.ArgumentParser(description="Answers questions with a small network.")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--per-second", type=float, default=100)
    parser.add_argument("--tiny", action="store_true", help="on the CPU, with little to do")
    options = parser.parse_args()
    if not options.tiny and not torch.cuda.is_available():
        parser.error("there is no GPU; --tiny does without")
    device, width = ("cpu", 16) if options.tiny else ("cuda", 2048)

    network = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)).to(device).eval()
    took = []
    with torch.inference_mode():
        for _ in range(options.requests):
            question = torch.randn(1, width)
            began = time.perf_counter()
            with gpuctl.request():
                network(question.to(device)).cpu()  # it waits for the answer, which belongs to the request
            took.append(time.perf_counter() - began)
            time.sleep(max(0, 1 / options.per_second - took[-1]))
    took.sort()
    p50, p99 = (1e3 * took[int(share * (len(took) - 1))] for share in (0.5, 0.99))
    print(f"{len(took)} requests: 50 % within {p50:.2f} ms, 99 % within {p99:.2f} ms", flush=True)


if __name__ == "__main__":
    main()
