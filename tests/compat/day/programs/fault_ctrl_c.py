# compat: Ctrl-C in the middle of a training, and while the program waits for a long kernel
# modules: torch
# args: training
# args: kernel
# ignore: (?s)Traceback.*KeyboardInterrupt
# signal: INT ready
import sys

import torch


def training():
    model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 10)).cuda()
    inputs, labels = torch.rand(256, 512).cuda(), torch.randint(0, 10, (256,)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step = 0
    while True:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        step += 1
        if step == 20:
            print("ready", flush=True)


def long_kernel():
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    for _ in range(2):
        torch.cuda._sleep(2_000_000_000)
    print("ready", flush=True)
    torch.cuda.synchronize()
    while True:
        pass


if __name__ == "__main__":
    training() if sys.argv[1] == "training" else long_kernel()
