# compat: torchrun with two ranks on two GPUs (NCCL)
# attached: 2
# modules: torch
# needs: peer
# output: unordered
from torchrun import launch

if __name__ == "__main__":
    launch("2", "nccl")
