"""Batch: trains a small U-Net, eager, fp32 with TF32: hundreds of short kernels a step, so the CPU is the limit."""

from harness import Program

WARM_UPS = 10


def make_model(program):
    torch = program.torch
    nn, functional = torch.nn, torch.nn.functional
    first, depth = program.size((16, 4), (4, 2))

    def block(inside, outside):
        return nn.Sequential(
            *(
                part
                for number in range(2)
                for part in (
                    nn.Conv2d(inside if number == 0 else outside, outside, 3, padding=1),
                    nn.BatchNorm2d(outside),
                    nn.ReLU(),
                )
            )
        )

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            widths = [first << level for level in range(depth)]
            self.down = nn.ModuleList(block(a, b) for a, b in zip([3, *widths], widths))
            self.widen = nn.ModuleList(
                nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in zip(widths[-2::-1], widths[:0:-1])
            )
            self.up = nn.ModuleList(block(2 * a, a) for a in widths[-2::-1])
            self.last = nn.Conv2d(first, 1, 1)

        def forward(self, x):
            kept = []
            for number, part in enumerate(self.down):
                x = part(x if number == 0 else functional.max_pool2d(x, 2))
                kept.append(x)
            kept.pop()
            for widen, part in zip(self.widen, self.up):
                x = part(torch.cat((kept.pop(), widen(x)), 1))
            return self.last(x)

    return UNet().to(program.device)


def main():
    program = Program()
    torch = program.torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    model = make_model(program)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    side = program.size(64, 16)
    images = torch.randn(8, 3, side, side, device=program.device)
    wanted = (torch.rand(8, 1, side, side, device=program.device) > 0.5).float()

    def step():
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(images), wanted)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    program.train(step, WARM_UPS)


if __name__ == "__main__":
    main()
