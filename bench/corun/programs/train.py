"""Batch: trains a GPT-2-like model of 12 layers on 16 x 512 tokens a step, bf16 autocast, fused AdamW."""

from harness import Program

WARM_UPS = 5


def make_model(program):
    torch = program.torch
    width, heads, layers, words, length = program.size((768, 12, 12, 50257, 512), (64, 4, 2, 100, 16))
    nn, functional = torch.nn, torch.nn.functional

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.project, self.back = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            rows, columns, _ = x.shape
            parts = self.project(self.before(x)).view(rows, columns, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            seen = functional.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
            x = x + self.back(seen.transpose(1, 2).reshape(rows, columns, width))
            return x + self.narrow(functional.gelu(self.widen(self.between(x)), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
            self.layers = nn.ModuleList(Layer() for _ in range(layers))
            self.last, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
            self.head.weight = self.words.weight

        def forward(self, tokens):
            x = self.words(tokens) + self.places.weight
            for layer in self.layers:
                x = layer(x)
            return self.head(self.last(x))

    return Model().to(program.device), words, length


def main():
    program = Program()
    torch = program.torch
    model, words, length = make_model(program)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=program.gpu)
    tokens = torch.randint(words, (program.size(16, 2), length + 1), device=program.device)

    def step():
        with torch.autocast(program.device, torch.bfloat16):
            scores = model(tokens[:, :-1])
            loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    program.train(step, WARM_UPS)


if __name__ == "__main__":
    main()
