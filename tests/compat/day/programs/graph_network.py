# compat: a graph neural network (PyTorch Geometric), trained; sums in no order, so its loss is about the same
# modules: torch torch_geometric
import torch
from printed import about
from torch_geometric.nn import GATConv, GCNConv

NODES, EDGES = 2000, 12000


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(32, 64), GATConv(64, 7, heads=2, concat=False)

    def forward(self, x, edges):
        return self.second(torch.relu(self.first(x, edges)), edges)


def main():
    torch.manual_seed(1)
    model, x = Model(), torch.rand(NODES, 32)
    edges, labels = torch.randint(0, NODES, (2, EDGES)), torch.randint(0, 7, (NODES,))
    model, x, edges, labels = model.cuda(), x.cuda(), edges.cuda(), labels.cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(20):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x, edges), labels)
        loss.backward()
        optimizer.step()
    about("loss", loss.item(), 0.02)


if __name__ == "__main__":
    main()
