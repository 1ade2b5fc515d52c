# compat: a small language model in PyTorch (4 layers, weights from a seed) that decodes 64 tokens greedily
# modules: torch
import torch

LAYERS, HEADS, WIDTH, WORDS, LONGEST = 4, 8, 512, 2048, 128
PROMPT = (11, 7, 1023, 5, 404, 90, 2, 1999)
TOKENS = 64


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.project, self.back = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.widen, self.narrow = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, kept):
        """`kept`: keys and values of the words before, which this adds its own to."""
        parts = self.project(self.before(x)).view(x.shape[0], 3, HEADS, WIDTH // HEADS).permute(1, 2, 0, 3)
        query, key, value = parts[0], *(torch.cat((old, new), 1) for old, new in zip(kept, parts[1:]))
        seen = torch.ones(x.shape[0], key.shape[1], dtype=torch.bool, device=x.device).tril(key.shape[1] - x.shape[0])
        mixed = torch.nn.functional.scaled_dot_product_attention(query[None], key[None], value[None], attn_mask=seen)[0]
        x = x + self.back(mixed.transpose(0, 1).reshape(x.shape))
        return x + self.narrow(torch.nn.functional.gelu(self.widen(self.between(x)))), (key, value)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(WORDS, WIDTH), torch.nn.Embedding(LONGEST, WIDTH)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.last, self.out = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens, first, kept):
        x = self.words(tokens) + self.places(torch.arange(first, first + tokens.shape[0], device=tokens.device))
        now = []
        for layer, old in zip(self.layers, kept):
            x, new = layer(x, old)
            now.append(new)
        return self.out(self.last(x[-1])), now


@torch.inference_mode()
def decode(model, device):
    nothing = torch.zeros(HEADS, 0, WIDTH // HEADS, device=device)
    kept, tokens, first, said = [(nothing, nothing)] * LAYERS, torch.tensor(PROMPT, device=device), 0, []
    for _ in range(TOKENS):
        scores, kept = model(tokens, first, kept)
        first += tokens.shape[0]
        tokens = scores.argmax().view(1)
        said.append(tokens.item())
    return said


def main():
    torch.manual_seed(20)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.use_deterministic_algorithms(True, warn_only=True)
    model = Model().eval()  # made on the CPU, so that its weights are the seed's alone
    print(*decode(model.cuda(), "cuda"))


if __name__ == "__main__":
    main()
