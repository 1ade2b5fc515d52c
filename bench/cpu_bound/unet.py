"""PyTorch, eager: training of a small U-Net, some hundreds of launches of a few microseconds each a step."""

from turns import main, need

torch = need("torch")
nn = torch.nn


def block(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self, widths=(16, 32, 64, 128)):
        super().__init__()
        pairs = list(zip(widths, widths[1:]))
        self.first = block(3, widths[0])
        self.down = nn.ModuleList(block(less, more) for less, more in pairs)
        self.widen = nn.ModuleList(nn.ConvTranspose2d(more, less, 2, stride=2) for less, more in reversed(pairs))
        self.up = nn.ModuleList(block(2 * less, less) for less, _ in reversed(pairs))
        self.last = nn.Conv2d(widths[0], 1, 1)

    def forward(self, x):
        kept = [self.first(x)]
        for down in self.down:
            kept.append(down(nn.functional.max_pool2d(kept[-1], 2)))
        x = kept.pop()
        for widen, up in zip(self.widen, self.up):
            x = up(torch.cat((widen(x), kept.pop()), 1))
        return self.last(x)


torch.manual_seed(1)
network = UNet().cuda()
optimizer = torch.optim.AdamW(network.parameters())
images = torch.randn(4, 3, 64, 64, device="cuda")
masks = (torch.rand(4, 1, 64, 64, device="cuda") > 0.5).float()


def step():
    optimizer.zero_grad()
    nn.functional.binary_cross_entropy_with_logits(network(images), masks).backward()
    optimizer.step()


main(step, torch.cuda.synchronize)
