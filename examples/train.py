#!/usr/bin/env python3
"""Trains a small network with PyTorch, as batch beside a server (serve.py). Nothing in it knows of gpuctl:

    gpuctl create-slice batch --max 40
    gpuctl run --slice batch python3 train.py

With --tiny it runs on the CPU, where there is no GPU, in a second.
"""

import argparse

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser(description="Trains a small network.")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--tiny", action="store_true", help="on the CPU, with little to do")
    options = parser.parse_args()
    if not options.tiny and not torch.cuda.is_available():
        parser.error("there is no GPU; --tiny does without")
    device, width, batch = ("cpu", 16, 32) if options.tiny else ("cuda", 4096, 512)

    torch.manual_seed(1)
    network = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)).to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    inputs = torch.randn(batch, width, device=device)
    wanted = inputs.mean(dim=1, keepdim=True)
    for step in range(options.steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(network(inputs), wanted)
        loss.backward()
        optimizer.step()
        if step in (0, options.steps - 1):
            print(f"step {step}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
