# compat: a DataLoader with two workers, pinned memory, in a program that has used the GPU: two epochs
# modules: torch
# args: fork
# args: spawn
import sys

import torch


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, at):
        return torch.arange(at, at + 256, dtype=torch.int64).square()


def main():
    weights = torch.arange(256, dtype=torch.int64).cuda()
    loader = torch.utils.data.DataLoader(
        Squares(), batch_size=32, num_workers=2, pin_memory=True, multiprocessing_context=sys.argv[1]
    )
    for epoch in range(2):
        total = torch.zeros((), dtype=torch.int64, device="cuda")
        for batch in loader:
            total += (batch.cuda(non_blocking=True) * weights).sum()
        print("epoch", epoch, total.item(), flush=True)


if __name__ == "__main__":
    main()
