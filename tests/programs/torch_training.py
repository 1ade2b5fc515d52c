#!/usr/bin/env python3
"""A small convolutional network, trained by PyTorch in single precision with deterministic algorithms: a round is one
step.

torch_training.py [--graph] ROUNDS (rounds.py). With --graph the step is captured once, as a CUDA graph, and replayed.
"""

import os
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what deterministic matrix products ask for

import rounds
import torch
from torch import nn

BATCH = 512
BATCHES = 8  # that take turns
WARM_UP_STEPS = 3  # before the capture


def network():
    return nn.Sequential(
        nn.Conv2d(3, 48, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(48, 96, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(96, 96, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(96 * 8 * 8, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    ).cuda()


class Training:
    def __init__(self):
        torch.manual_seed(1)
        self.images = torch.randn(BATCHES, BATCH, 3, 32, 32).cuda()
        self.labels = torch.randint(10, (BATCHES, BATCH)).cuda()
        self.network = network()
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.01, momentum=0.9)
        self.image = self.images[0].clone()
        self.label = self.labels[0].clone()
        self.losses = torch.zeros((), dtype=torch.float64, device="cuda")  # their sum
        self.number = 0

    def compute(self):
        """One step on what lies in image and label."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.network(self.image), self.label)
        loss.backward()
        self.optimizer.step()
        self.losses.add_(loss.detach().double())

    def step(self):
        self.next_batch()
        self.compute()

    def next_batch(self):
        which = self.number % BATCHES
        self.image.copy_(self.images[which])
        self.label.copy_(self.labels[which])
        self.number += 1

    def contents(self):
        tensors = [*self.network.parameters(), self.losses]
        return b"".join(tensor.detach().cpu().numpy().tobytes() for tensor in tensors)


class GraphTraining(Training):
    def __init__(self):
        super().__init__()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP_STEPS):
                self.compute()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(self.graph):
            self.compute()

    def step(self):
        self.next_batch()
        self.graph.replay()


def main():
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    graph = "--graph" in sys.argv
    training = GraphTraining() if graph else Training()
    rounds.main("torch_graph" if graph else "torch_training", training.step, torch.cuda.synchronize, training.contents)


if __name__ == "__main__":
    main()
