"""How a configuration of ours compares with stock ones in each cell, beside what is aimed at."""

from typing import NamedTuple


class Aim(NamedTuple):
    ours: str
    stock: tuple  # the one of these with the least LS p99 counts
    most_p99: float  # LS p99 over that of stock, in every cell
    least_batch: float  # batch throughput over that of stock, in every cell
    least_mean_batch: float | None = None  # the same, mean of the cells


# They leave LS as many SMs as a reserve of 0.106 of them.
LEAVE_AS_MANY = ("mps-90", "mps-stream-90", "mps-stream-90-of-two", "mps-stream-90-of-eight")

AIMS = (
    Aim("ours", ("mps",), 1.02, 0.95, 0.98),
    Aim("ours-priority", ("mps-stream", "mps-client"), 1.03, 0.98),
    Aim("ours-strict:reserve=0.106", LEAVE_AS_MANY, 1.0, 1.0),
    Aim("ours-active:reserve=0.106", LEAVE_AS_MANY, 1.0, 1.0),
)


def best_stock(cell, aim):
    """The name of the stock configuration that counts; None: none of them was run."""
    run = [name for name in aim.stock if name in cell["points"]]
    return min(run, key=lambda name: cell["points"][name]["p99_us"]["median"], default=None)


def verdict(value, aimed, least):
    met = value >= aimed if least else value <= aimed
    return f"{value:.3f}" if met else f"{value:.3f} missed"


def compared(at, beside, aimed, least):
    """A figure over that of stock: the ratio of the medians, and the verdict."""
    ratio = at["median"] / beside["median"]
    said = verdict(ratio, aimed, least)
    return ratio, said + (", ranges overlap" if said.endswith("missed") and overlap(at, beside) else "")


def overlap(one, other):
    return one["least"] <= other["greatest"] and other["least"] <= one["greatest"]


def row(cell, aim):
    """One cell's line, as words, and its part of batch throughput. None: one of the sides was not run."""
    stock = best_stock(cell, aim)
    if stock is None or aim.ours not in cell["points"]:
        return None
    at, beside = cell["points"][aim.ours], cell["points"][stock]
    _, p99_said = compared(at["p99_us"], beside["p99_us"], aim.most_p99, least=False)
    batch, batch_said = compared(at["throughput"], beside["throughput"], aim.least_batch, least=True)
    return [f"{cell['ls']} x {cell['batch']}", stock, p99_said, batch_said], batch


def tables(cells):
    """For each aim of which something was run, its rows as words, the head first."""
    for aim in AIMS:
        found = [one for cell in cells if (one := row(cell, aim))]
        if not found:
            continue
        head = [
            f"{aim.ours} over stock",
            "stock",
            f"LS p99, at most {aim.most_p99:.2f}",
            f"batch, at least {aim.least_batch:.2f}",
        ]
        parts = [batch for _, batch in found]
        mean = sum(parts) / len(parts)
        said = f"{mean:.3f}" if aim.least_mean_batch is None else verdict(mean, aim.least_mean_batch, least=True)
        aimed = "" if aim.least_mean_batch is None else f" (at least {aim.least_mean_batch:.2f})"
        yield [head, *(words for words, _ in found), [f"mean of {len(parts)}{aimed}", "", "", said]]
