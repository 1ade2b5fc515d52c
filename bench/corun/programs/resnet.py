"""LS: ResNet-50, fp16, one picture a request, captured as a CUDA graph. A request copies the picture to the GPU and the
answer back.
"""

from harness import Program, captured

PERIOD_S = 1 / 100
WARM_UPS = 20
STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))


def make_model(program):
    nn = program.torch.nn
    stages = program.size(STAGES, ((1, 8), (1, 16)))
    first = stages[0][1]

    def convolution(inputs, outputs, size, stride=1):
        return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs))

    class Bottleneck(nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            self.body = nn.Sequential(
                convolution(inputs, width, 1),
                nn.ReLU(True),
                convolution(width, width, 3, stride),
                nn.ReLU(True),
                convolution(width, 4 * width, 1),
            )
            self.around = (
                convolution(inputs, 4 * width, 1, stride) if stride != 1 or inputs != 4 * width else nn.Identity()
            )
            self.end = nn.ReLU(True)

        def forward(self, x):
            return self.end(self.body(x) + self.around(x))

    parts, inputs = [convolution(3, first, 7, 2), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)], first
    for number, (blocks, width) in enumerate(stages):
        for block in range(blocks):
            parts.append(Bottleneck(inputs, width, 2 if number and not block else 1))
            inputs = 4 * width
    parts += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000)]
    model = nn.Sequential(*parts).eval().to(program.device)
    return model.half().to(memory_format=program.torch.channels_last) if program.gpu else model


def main():
    program = Program(period_s=PERIOD_S)
    torch = program.torch
    model = make_model(program)
    side = program.size(224, 32)
    picture = torch.rand(1, 3, side, side, dtype=torch.float16 if program.gpu else torch.float32).contiguous(
        memory_format=torch.channels_last
    )
    held = picture.to(program.device)
    with torch.inference_mode(), program.stream():
        replay = captured(program, lambda: model(held))
        if program.gpu:
            picture = picture.pin_memory()

        def request():
            held.copy_(picture, non_blocking=True)
            return replay().argmax().item()

        for _ in range(program.size(WARM_UPS, 2)):
            request()
        program.serve_requests(request)


if __name__ == "__main__":
    main()
