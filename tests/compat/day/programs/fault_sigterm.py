# compat: SIGTERM in the middle of a training
# modules: torch
# signal: TERM ready
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


if __name__ == "__main__":
    training()
