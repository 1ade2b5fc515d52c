"""Makes docs/benchmarks.md, a user's page, of one file of results.

python3 -m bench.pages bench/results/NAME.json > docs/benchmarks.md
python3 -m bench.pages --commands                prints what measures a file for it

The file is what bench/corun.sh writes as corun.json, or several of these put together by bench.corun.merge. All of it
must be of one commit and of a GPU. What is read of it:

    software         true: of the software GPU, whose figures mean nothing; refused
    machine          gpu ("NVIDIA H100 80GB HBM3, 580.159.04"), when, commit
    options          rounds, seconds (of each round)
    cells            a list, of each pair of a latency-sensitive program and batch:
      ls, batch      their names (bench/corun/workloads.py)
      machine        as above, if the cell was merged
      alone          the point of each by itself
      points         by the name of the configuration (bench/corun/configurations.py)
    a point          p99_us, throughput: {median, least, greatest, rounds} or null; unserved: requests

A question has one configuration of ours and the stock ones that a user would take in its place. Of these the one with
the least p99 in the pair stands beside ours. What was not run is not on the page.
"""

import json
import pathlib
import sys
from typing import NamedTuple

from .corun.aims import LEAVE_AS_MANY, overlap

LS = {
    "short": "short kernels",
    "fill": "kernels that fill the GPU",
    "memory": "memory-bound kernels",
    "decode": "language model",
    "resnet": "vision model",
}
BATCH = {
    "compute-10us": "thread blocks of 10 us",
    "compute-100us": "thread blocks of 100 us",
    "compute-5ms": "thread blocks of 5 ms",
    "memory-bound": "memory-bound kernels",
    "train": "training in PyTorch",
    "two-train": "two trainings in PyTorch",
    "matmul": "cuBLAS",
    "triton": "Triton",
    "eight": "eight programs",
    "two": "cuBLAS, and training in PyTorch",
}
STOCK = {
    "mps": "MPS",
    "mps-stream": "MPS, stream priorities",
    "mps-client": "MPS, client priorities",
    "sliced": "time-slicing",
}


class Question(NamedTuple):
    title: str
    settings: str  # of gpuctl
    ours: str
    stock: tuple
    pairs: tuple  # LS, batch: few enough that the page stays short


QUESTIONS = (
    Question(
        "What does a slice cost when nothing is set?",
        "`gpuctl run --slice NAME PROGRAM`",
        "ours",
        ("mps",),
        (("short", "compute-100us"), ("decode", "train"), ("resnet", "triton")),
    ),
    Question(
        "How fast does my server answer while batch keeps all SMs?",
        "`--priority 50` for the server",
        "ours-priority",
        ("mps-stream", "mps-client"),
        (("short", "compute-100us"), ("fill", "memory-bound"), ("decode", "train"), ("resnet", "train")),
    ),
    Question(
        "And if it must not wait for batch's thread blocks?",
        "`--reserve 14` for the server, of 132 SMs",
        "ours-active:reserve=0.106",
        LEAVE_AS_MANY,
        (("short", "compute-100us"), ("short", "eight"), ("decode", "train"), ("resnet", "matmul")),
    ),
    Question(
        "Can several batch programs keep to a part of the GPU together?",
        "`--priority 50` for the server, `--max 99` for batch",
        "ours-priority-max-75",
        ("mps-stream-75", "mps-stream-75-of-eight"),
        (("fill", "eight"), ("decode", "eight"), ("decode", "train")),
    ),
    Question(
        "And without MPS, where programs take turns?",
        "`--priority 50` for the server",
        "ours-sliced-priority",
        ("sliced",),
        (("decode", "train"), ("resnet", "matmul"), ("resnet", "two")),
    ),
    Question(
        "And if it must answer within milliseconds, whatever kernels batch has?",
        "`--isolation isolated --priority 50` for the server",
        "isolated-priority",
        ("mps-stream", "sliced"),
        (("resnet", "two"), ("resnet", "matmul")),
    ),
    Question(
        "And if I only say how fast?",
        "`--isolation isolated --latency 2x` for the server: twice of what it takes alone",
        "isolated-2x",
        ("mps-stream", "sliced"),
        (("resnet", "two"), ("resnet", "matmul")),
    ),
)


class Row(NamedTuple):
    ls: str
    batch: str
    alone: dict | None  # p99
    stock_name: str
    stock: dict  # a point
    ours: dict


def time(us):
    if us >= 1e6:
        return f"{us / 1e6:.3g} s"
    return f"{us / 1000:.3g} ms" if us >= 1000 else f"{us:.3g} us"


def latency(point):
    at = point["p99_us"]
    said = time(at["median"])
    if at["rounds"] > 1:
        said += f" ({time(at['least'])} to {time(at['greatest'])})"
    return said + (f", {point['unserved']} not served" if point["unserved"] else "")


def throughput(point):
    """Steps a second, of different programs those of each."""
    rates = point.get("rates") or {"": point["throughput"]}
    return ", ".join(f"{rate['median']:.1f}" for rate in rates.values())


def stock_for(question, batch):
    """Without the percentages for each of several programs where batch is not so many."""
    several = {"-of-eight": "eight", "-of-two": "two-train"}
    return [
        name
        for name in question.stock
        if all(batch == needed for ending, needed in several.items() if name.endswith(ending))
    ]


def rows(question, cells):
    found = []
    for pair in question.pairs:
        cell = cells.get(pair)
        points = {} if cell is None else cell["points"]
        stock = [name for name in stock_for(question, pair[1]) if name in points]
        if stock and question.ours in points:
            best = min(stock, key=lambda name: points[name]["p99_us"]["median"])
            found.append(Row(*pair, cell["alone"]["p99_us"], best, points[best], points[question.ours]))
    return found


def no_worse(row):
    ours, stock = row.ours["p99_us"], row.stock["p99_us"]
    return ours["median"] <= stock["median"] or overlap(ours, stock)


def meaning(found):
    """One sentence: what the table says."""
    parts = [row.ours["throughput"]["median"] / row.stock["throughput"]["median"] for row in found]
    good = sum(map(no_worse, found))
    least, most = (f"{part:.2f}" for part in (min(parts), max(parts)))
    batch = least if least == most else f"{least} to {most}"
    pairs = "the one pair" if len(found) == 1 else f"{good} of {len(found)} pairs"
    if len(found) == 1 and not good:
        pairs = "no pair"
    server = f"In {pairs} the server is no slower than without gpuctl, within the rounds' ranges"
    return f"{server}; batch has {batch} of its throughput there."


def section(question, found, descriptions):
    yield f"## {question.title}"
    yield ""
    yield f"With {question.settings}. {meaning(found)}"
    yield ""
    yield "| server; batch | p99 alone | best without gpuctl | p99 | batch/s | p99 with gpuctl | batch/s |"
    yield "|---|---|---|---|---|---|---|"
    for row in found:
        columns = (
            f"{LS.get(row.ls, row.ls)}; {BATCH.get(row.batch, row.batch)}",
            time(row.alone["median"]) if row.alone else "",
            STOCK.get(row.stock_name, descriptions.get(row.stock_name, row.stock_name)),
            latency(row.stock),
            throughput(row.stock),
            latency(row.ours),
            throughput(row.ours),
        )
        yield f"| {' | '.join(columns)} |"
    yield ""


def page(data, name):
    """The lines of the page. ValueError: the file is not one that a page may be made of."""
    if data["software"]:
        raise ValueError("figures of the software GPU mean nothing")
    machines = [cell.get("machine", data["machine"]) for cell in data["cells"]]
    commits = {machine["commit"] for machine in machines}
    if len(commits) != 1:
        raise ValueError(f"not of one commit: {', '.join(sorted(commits)) or 'no cell'}")
    cells = {(cell["ls"], cell["batch"]): cell for cell in data["cells"]}
    answered = [(question, found) for question in QUESTIONS if (found := rows(question, cells))]
    if not answered:
        raise ValueError("no question is answered by what was run")
    descriptions = {name: about["description"] for name, about in data["configurations"].items()}
    yield "# Benchmarks"
    yield ""
    yield f"Made by `python3 -m bench.pages` of `bench/results/{name}`, which names the commit. Do not edit it."
    options = data["options"]
    gpus = " and ".join(dict.fromkeys(machine["gpu"] for machine in machines))
    yield f"{gpus}. Medians of {options['rounds']} rounds of {options['seconds']:g} s, with their range."
    yield "p99: of 100 requests of the server, 99 were answered at least this fast. Each row is of one run."
    yield "Of several batch programs each has a figure. What is compared is their geometric mean."
    yield ""
    for question, found in answered:
        yield from section(question, found, descriptions)
    yield "Aims, misses and their causes: [engineering-notes.md](engineering-notes.md)."


def commands():
    """All that a pair needs is measured in one run: bench.corun.merge mixes no runs of a pair."""
    needed = {}
    for question in QUESTIONS:
        for pair in question.pairs:
            needed.setdefault(pair, {"alone": None}).update(
                dict.fromkeys((*stock_for(question, pair[1]), question.ours))
            )
    together = {}
    for (ls, batch), names in needed.items():
        together.setdefault((ls, ",".join(names)), []).append(batch)
    for number, ((ls, names), batches) in enumerate(together.items(), 1):
        yield (
            f"bench/corun.sh --quick --rounds 3 --seconds 3 --out build/benchmarks/{number} --only-ls {ls} "
            f"--only-batch {','.join(batches)} --configurations {names}"
        )
    yield "python3 -m bench.corun.merge build/benchmarks/*/corun.json > bench/results/NAME.json"


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: python3 -m bench.pages RESULTS.json > docs/benchmarks.md")
    if sys.argv[1] == "--commands":
        print("\n".join(commands()))
        return
    path = pathlib.Path(sys.argv[1])
    try:
        print("\n".join(page(json.loads(path.read_text(encoding="utf-8")), path.name)))
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"{path}: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
