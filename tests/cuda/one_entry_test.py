#!/usr/bin/env python3
"""Every loop of the kernels in a PTX file has one entry: one_entry_test.py FILE.

ptxas brings the lanes of a warp together again only around such loops (src/ptx/pass/wrap_in_claim_loop.cc), so what
nvcc makes of gpuslice/device.cuh must not have others. A flow graph is so if, and only if, taking away edges from a
node to itself and merging nodes with their only predecessor, in any order, leaves one node."""

import re
import sys


def flow_graph(body):
    """Successors by number of basic block; the first is the entry."""
    blocks, labels = [[]], {}
    for line in (line.strip() for line in body.splitlines()):
        label = re.fullmatch(r"(\$\w+):", line)
        if label:
            if blocks[-1]:
                blocks.append([])
            labels[label[1]] = len(blocks) - 1
        elif line and not line.startswith(("//", ".", "{", "}")):
            blocks[-1].append(line)
            if re.search(r"\b(bra(\.uni)?|ret|exit|trap)\b", line):
                blocks.append([])
    graph = {}
    for number, block in enumerate(blocks):
        last = block[-1] if block else ""
        target = re.search(r"\bbra(?:\.uni)?\s+(\$\w+);", last)
        ends = target or re.search(r"\b(ret|exit|trap);", last)
        graph[number] = {labels[target[1]]} if target else set()
        if (not ends or last.startswith("@")) and number + 1 < len(blocks):
            graph[number].add(number + 1)
    reached, waiting = set(), [0]
    while waiting:
        number = waiting.pop()
        if number not in reached:
            reached.add(number)
            waiting += graph[number]
    return {number: graph[number] for number in reached}


def reduced(graph):
    graph = {number: set(after) for number, after in graph.items()}
    while True:
        for number, after in graph.items():
            after.discard(number)
        for number in graph:
            before = [other for other, after in graph.items() if number in after]
            if number != 0 and len(before) == 1:
                graph[before[0]] |= graph.pop(number)
                graph[before[0]].discard(number)
                break
        else:
            return graph


def main():
    # The test of the test: a loop with two entries, and one with one.
    assert len(reduced({0: {1, 2}, 1: {2}, 2: {1}})) == 3
    assert len(reduced({0: {1}, 1: {2, 3}, 2: {1}, 3: set()})) == 1
    text = open(sys.argv[1]).read()
    entries = re.findall(r"\.entry\s+(\w+)\([^)]*\)[^{]*\n\{\n(.*?)\n\}\n", text, re.S)
    assert entries, "no kernel found"
    for name, body in entries:
        graph = flow_graph(body)
        left = reduced(graph)
        print(f"{name}: {len(graph)} blocks, {body.count('bar.sync') + body.count('barrier.sync')} barriers")
        assert len(graph) > 20, "that is no worker"
        assert len(left) == 1, f"{name}: a loop with two entries among the blocks {sorted(left)}"


if __name__ == "__main__":
    main()
