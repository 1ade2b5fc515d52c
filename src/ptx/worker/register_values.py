"""Whether what the worker's templates read from a register was written under the same name (embed_worker.py).

Several names may share a register. A value must not be overwritten under another name while its own is still read."""

import collections
import re

REGISTER = re.compile(r"%\w+")
INSTRUCTION = re.compile(r"\s*(?:@(!?)(%\w+)\s+)?([a-z]\S*)\s*(.*);")
# Instructions that write no register: all their operands are read.
WRITES_NONE = {"bar", "bra", "call", "cp", "fence", "nanosleep", "red", "ret", "st"}

# What a line does. writes, reads: names of registers; guard: whether it is negated, and its name.
Step = collections.namedtuple("Step", "place writes reads guard target falls_through")


def step_of(line):
    found = INSTRUCTION.fullmatch(line.text)
    if not found:  # a label, a condition, a declaration
        return Step(line.place, [], [], None, None, True)
    negated, guard, opcode, operands = found.groups()
    name = opcode.split(".")[0]
    reads = [guard] if guard else []
    if name == "bra":
        return Step(line.place, [], reads, None, operands, bool(guard))
    if name == "ret":
        return Step(line.place, [], reads, None, None, False)
    first = re.match(r"{[^}]*}|[^,]*", operands).group()
    writes = [] if name in WRITES_NONE else REGISTER.findall(first)
    reads += REGISTER.findall(operands[len(first) if writes else 0 :])
    return Step(line.place, writes, reads, (bool(negated), guard) if guard else None, None, True)


def edges(lines, steps):
    """Where each step may lead. Of a condition both sides may be there."""
    labels = collections.defaultdict(list)
    after_if, after_else, opened = {}, {}, []
    for at, line in enumerate(lines):
        if re.fullmatch(r"\$\w+:", line.text):
            labels[line.text[:-1]].append(at)
        elif line.text.startswith("#if"):
            opened.append(at)
        elif line.text == "#else":
            after_if[opened[-1]] = at + 1
            opened.append(at)
        elif line.text == "#end":
            last = opened.pop()
            if lines[last].text == "#else":
                after_else[last] = at
                opened.pop()
            else:
                after_if[last] = at
    for at, step in enumerate(steps):
        leads_to = labels[step.target] if step.target else []
        if at in after_else:
            yield [after_else[at]]
        else:
            yield [
                *leads_to,
                *([at + 1] if step.falls_through and at + 1 < len(steps) else []),
                *([after_if[at]] if at in after_if else []),
            ]


def mixed_values(lines, registers):
    """Lists (place, name read, name under which the value may have been written). registers: that of each name."""
    steps = [step_of(line) for line in lines]
    leads = list(edges(lines, steps))
    holds = [collections.defaultdict(set) for _ in steps]  # the names under which each register may have been written
    reached = [False] * len(steps)
    work = [0]
    while work:
        at = work.pop()
        reached[at] = True
        step = steps[at]
        after = dict(holds[at])
        for name in step.writes:
            register = registers.get(name)
            # Of two neighbours with opposite guards, one writes.
            before = steps[at - 1]
            sure = step.guard is None or (
                before.guard == (not step.guard[0], step.guard[1]) and before.writes == step.writes
            )
            after[register] = {name} if sure else {name} | after.get(register, set())
        for to in leads[at]:
            news = [(register, names - holds[to][register]) for register, names in after.items()]
            if not reached[to] or any(new for _, new in news):
                for register, new in news:
                    holds[to][register] |= new
                work.append(to)
    return [
        (step.place, name, other)
        for at, step in enumerate(steps)
        for name in step.reads
        for other in sorted(holds[at][registers.get(name)] - {name})
        if name in registers
    ]
