# compat: PyTorch: exact products and reductions, streams, a CUDA graph, a training with deterministic algorithms
# modules: torch numpy
# told: training \w+
# PyTorch and cuBLAS choose how sums are split by the number of SMs.
import os

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"

import numpy
import torch
from printed import check, print_hash

ROUNDS = 60


def whole(generator, *shape, most=8):
    """Small whole numbers, of which products and sums are exact in single precision."""
    return torch.randint(-most, most, shape, generator=generator).float()


def products(generator):
    left, right = whole(generator, 384, 512), whole(generator, 512, 320)
    expected = (left.numpy().astype(numpy.int64) @ right.numpy().astype(numpy.int64)).astype(numpy.float32)
    on_gpu, other = left.cuda(), right.cuda()
    for _ in range(ROUNDS):
        product = on_gpu @ other
    check("product", product.cpu().numpy(), expected)


def whole_numbers(generator):
    values = torch.randint(-1000, 1000, (1 << 20,), generator=generator)
    on_gpu = values.cuda()
    for _ in range(ROUNDS):
        ordered, running = torch.sort(on_gpu)[0], torch.cumsum(on_gpu, 0)
    check("sort", ordered.cpu().numpy(), numpy.sort(values.numpy()))
    check("running sum", running.cpu().numpy(), numpy.cumsum(values.numpy()))
    check("sum", on_gpu.sum().cpu().numpy(), values.numpy().sum())


def streams(generator):
    values = torch.randint(0, 100, (1 << 18,), generator=generator, dtype=torch.int32)
    results = [values.cuda() for _ in range(4)]
    torch.cuda.synchronize()
    for result, stream in zip(results, [torch.cuda.Stream() for _ in results]):
        with torch.cuda.stream(stream):
            for _ in range(ROUNDS):
                result.mul_(3).add_(1).bitwise_and_(0xFFFF)
    torch.cuda.synchronize()
    expected = values.numpy().copy()
    for _ in range(ROUNDS):
        expected = expected * 3 + 1 & 0xFFFF
    for number, result in enumerate(results):
        check(f"stream {number}", result.cpu().numpy(), expected)


def graph(generator):
    values = torch.randint(0, 100, (1 << 18,), generator=generator, dtype=torch.int32)
    held = values.cuda()
    held.mul_(5).add_(7).bitwise_and_(0xFFFF)  # loads what the graph will hold
    torch.cuda.synchronize()
    step = torch.cuda.CUDAGraph()
    with torch.cuda.graph(step):
        held.mul_(5).add_(7).bitwise_and_(0xFFFF)
    held.copy_(values)
    for _ in range(ROUNDS):
        step.replay()
    torch.cuda.synchronize()
    expected = values.numpy().copy()
    for _ in range(ROUNDS):
        expected = expected * 5 + 7 & 0xFFFF
    check("graph", held.cpu().numpy(), expected)


def training(generator):
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.LayerNorm(256), torch.nn.Linear(256, 10)
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.rand(parameter.shape, generator=generator) - 0.5)
    model.cuda()
    inputs, labels = (
        torch.rand(128, 64, generator=generator).cuda(),
        torch.randint(0, 10, (128,), generator=generator).cuda(),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(20):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print_hash("training", torch.cat([parameter.detach().flatten() for parameter in model.parameters()]).cpu().numpy())


def main():
    torch.use_deterministic_algorithms(True)
    torch.backends.cuda.matmul.allow_tf32 = False
    for number, part in enumerate((products, whole_numbers, streams, graph, training)):
        part(torch.Generator().manual_seed(number))


if __name__ == "__main__":
    main()
