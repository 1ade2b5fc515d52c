"""Batch: trains a recommendation model of DLRM's shape: 26 embedding tables with sparse gradients and two small MLPs.
Most of a step reads and writes rows of the tables, at random.
"""

from harness import Program

WARM_UPS = 5
DENSE = 13  # numbers beside the words of each example


def make_model(program):
    torch = program.torch
    nn = torch.nn
    tables, rows, width = program.size((26, 1_000_000, 64), (3, 100, 8))

    def mlp(*widths):
        return nn.Sequential(
            *(part for a, b in zip(widths, widths[1:]) for part in (nn.Linear(a, b), nn.ReLU())),
        )

    class Recommender(nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum", sparse=True) for _ in range(tables))
            self.dense = mlp(DENSE, 4 * width, width)
            pairs = (tables + 1) * tables // 2
            self.top = nn.Sequential(mlp(width + pairs, 8 * width, 4 * width), nn.Linear(4 * width, 1))
            above = torch.triu_indices(tables + 1, tables + 1, offset=1)
            self.register_buffer("above", above, persistent=False)

        def forward(self, dense, words):
            dense = self.dense(dense)
            all_of = torch.stack([dense, *(table(of) for table, of in zip(self.tables, words))], 1)
            products = torch.bmm(all_of, all_of.transpose(1, 2))[:, self.above[0], self.above[1]]
            return self.top(torch.cat((dense, products), 1))

    return Recommender().to(program.device), tables, rows


def main():
    program = Program()
    torch = program.torch
    model, tables, rows = make_model(program)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    examples, words_each = program.size((8192, 10), (16, 2))
    words = [torch.randint(rows, (examples, words_each), device=program.device) for _ in range(tables)]
    dense = torch.randn(examples, DENSE, device=program.device)
    wanted = (torch.rand(examples, 1, device=program.device) > 0.5).float()

    def step():
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(dense, words), wanted)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    program.train(step, WARM_UPS)


if __name__ == "__main__":
    main()
