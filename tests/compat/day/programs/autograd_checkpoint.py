# compat: autograd with checkpoints: the gradients are those without, to the bit
# modules: torch
import torch
from torch.utils.checkpoint import checkpoint


def gradients(model, inputs, kept):
    model.zero_grad()
    x = inputs
    for layer in model:
        x = checkpoint(layer, x, use_reentrant=False) if kept else layer(x)
    x.square().mean().backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


def main():
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cuda.matmul.allow_tf32 = False
    layers = [torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.GELU()) for _ in range(6)]
    model, inputs = torch.nn.ModuleList(layers).cuda(), torch.rand(256, 128).cuda().requires_grad_()
    plain, with_checkpoints = gradients(model, inputs, False), gradients(model, inputs, True)
    print("the same", torch.allclose(plain, with_checkpoints, rtol=1e-5, atol=1e-8), "none lost", bool(plain.any()))


if __name__ == "__main__":
    main()
