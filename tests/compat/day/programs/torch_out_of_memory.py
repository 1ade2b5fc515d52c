# compat: PyTorch: more memory than there is, at once and bit by bit; the program goes on
# modules: torch
import torch

PIECE = 128 << 20


def main():
    torch.cuda.set_per_process_memory_fraction(0.03)
    try:
        torch.empty(1 << 44, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError as error:
        print("at once:", type(error).__name__)
    held = []
    try:
        while True:
            held.append(torch.full((PIECE,), len(held) % 100, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError as error:
        print("bit by bit:", type(error).__name__, "after some" if held else "after none")
    kept = held[:2]
    del held
    print("kept", [each.long().sum().item() // PIECE for each in kept])
    del kept
    torch.cuda.empty_cache()
    print("on", torch.arange(1 << 20, dtype=torch.int64, device="cuda").sum().item())


if __name__ == "__main__":
    main()
