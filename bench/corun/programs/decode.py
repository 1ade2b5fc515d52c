"""LS: a Llama-like model of 6 layers decodes, eager, bf16. A request is four tokens; the CPU reads each token before
the next one is computed.
"""

from harness import Program

TOKENS = 4
PERIOD_S = 1 / 15
WARM_UPS = 20


def make_model(program):
    torch = program.torch
    width, heads, layers, inner, words = program.size((4096, 32, 6, 11008, 32000), (64, 4, 2, 128, 100))
    context = program.size(512, 16)
    nn, functional = torch.nn, torch.nn.functional

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))

        def forward(self, x):
            wide = x.float()
            return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = Norm(), Norm()
            self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
            self.gate, self.up, self.down = (
                nn.Linear(width, inner, bias=False),
                nn.Linear(width, inner, bias=False),
                nn.Linear(inner, width, bias=False),
            )
            self.register_buffer("keys", torch.zeros(1, heads, context + TOKENS, width // heads))
            self.register_buffer("values", torch.zeros(1, heads, context + TOKENS, width // heads))

        def forward(self, x, at, turn):
            y = self.before(x)
            query, key, value = (
                part(y).view(1, 1, heads, width // heads).transpose(1, 2) for part in (self.query, self.key, self.value)
            )
            query, key = rotated(query, turn), rotated(key, turn)
            self.keys[:, :, at : at + 1], self.values[:, :, at : at + 1] = key, value
            seen = functional.scaled_dot_product_attention(
                query, self.keys[:, :, : at + 1], self.values[:, :, : at + 1]
            )
            x = x + self.out(seen.transpose(1, 2).reshape(1, 1, width))
            y = self.between(x)
            return x + self.down(functional.silu(self.gate(y)) * self.up(y))

    def rotated(x, turn):
        half = x.shape[-1] // 2
        return x * turn[0] + torch.cat((-x[..., half:], x[..., :half]), -1) * turn[1]

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(words, width)
            self.layers = nn.ModuleList(Layer() for _ in range(layers))
            self.last, self.head = Norm(), nn.Linear(width, words, bias=False)
            steps = torch.arange(0, width // heads, 2) / (width // heads)
            angles = torch.outer(torch.arange(context + TOKENS).float(), 10000.0**-steps)
            self.register_buffer(
                "turns", torch.stack((torch.cat((angles, angles), -1).cos(), torch.cat((angles, angles), -1).sin()))
            )

        def forward(self, token, at):
            x, turn = self.words(token), self.turns[:, at]
            for layer in self.layers:
                x = layer(x, at, turn)
            return self.head(self.last(x[:, -1])).argmax(-1, keepdim=True)

    with torch.device(program.device):
        model = Model().to(torch.bfloat16).eval()
    return model, context


def main():
    program = Program(period_s=PERIOD_S)
    model, context = make_model(program)
    torch = program.torch
    start = torch.tensor([[1]], device=program.device)

    def request():
        token = start
        for number in range(TOKENS):
            token = model(token, context + number)
            token.item()

    with torch.inference_mode(), program.stream():
        for _ in range(program.size(WARM_UPS, 2)):
            request()
        program.serve_requests(request)


if __name__ == "__main__":
    main()
