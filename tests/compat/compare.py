"""What differs between a plain run and another one of the same program: nothing is ignored but what its head names."""

import math
import re

# Errors after which the CUDA context of a program is of no more use.
STICKY = re.compile(
    r"cudaError(IllegalAddress|LaunchFailure|LaunchTimeout|Assert|IllegalInstruction|MisalignedAddress"
    r"|InvalidAddressSpace|InvalidPc|HardwareStackError|ECCUncorrectable|Contained|TensorMemoryLeak)\b"
    r"|CUDA_ERROR_(ILLEGAL_ADDRESS|LAUNCH_FAILED|LAUNCH_TIMEOUT|ASSERT|ILLEGAL_INSTRUCTION|MISALIGNED_ADDRESS"
    r"|INVALID_ADDRESS_SPACE|INVALID_PC|HARDWARE_STACK_ERROR|ECC_UNCORRECTABLE|CONTAINED)\b"
)
ERROR = re.compile(r"cudaError\w+|CUDA_ERROR_\w+")
# A number of which the program itself says how far off it may be: ~2.31 within 0.05.
ABOUT = re.compile(r"~(\S+) within (\S+)")
SKIP_STATUS = 77  # of a program that says why it cannot run here
LONGEST = 160


def lines(text, unordered):
    """Those of the output; white space at its two ends does not count."""
    split = text.strip().splitlines()
    return sorted(split) if unordered else split


def shown(line):
    if line is None:
        return "no such line"
    return repr(line if len(line) <= LONGEST else line[:LONGEST] + "...")


def near(left, right):
    """Whether two lines are the same but for numbers that are about the same."""
    ours, theirs = ABOUT.findall(left), ABOUT.findall(right)
    return (
        ABOUT.sub("~", left) == ABOUT.sub("~", right)
        and len(ours) == len(theirs)
        and all(one[1] == other[1] and apart(one[0], other[0]) <= float(one[1]) for one, other in zip(ours, theirs))
    )


def apart(left, right):
    """Of two that are no numbers: without an end."""
    try:
        distance = abs(float(left) - float(right))
    except ValueError:
        return math.inf
    return math.inf if math.isnan(distance) else distance


def first_difference(plain, got, unordered=False):
    """The first line that differs, or None."""
    if not unordered and plain == got:
        return None
    ours, theirs = lines(plain, unordered), lines(got, unordered)
    for number in range(max(len(ours), len(theirs))):
        left, right = (side[number] if number < len(side) else None for side in (ours, theirs))
        if left != right and (left is None or right is None or not near(left, right)):
            return f"line {number + 1}: plain {shown(left)}, got {shown(right)}"
    return None


def difference(plain, got, unordered=False, ignore="", noise=""):
    """One line that says how an outcome differs from the plain one, or None. What matches `ignore` does not count, nor
    on stderr what matches `noise`."""
    said = []
    if got.status_text() != plain.status_text():
        said.append(f"plain {plain.status_text()}, got {got.status_text()}")
    for name, left, right in (("stdout", plain.out, got.out), ("stderr", plain.err, got.err)):
        for pattern in filter(None, (ignore, noise if name == "stderr" else "")):
            left, right = (re.sub(pattern, "...", text) for text in (left, right))
        found = first_difference(left, right, unordered)
        if found:
            said.append(f"{name} {found}")
    # The first line of an exception's message names its type only.
    last = got.err.strip().splitlines()[-1:]
    if said and got.err != plain.err and last and shown(last[0]) not in said[-1]:
        said.append(f"last on stderr {shown(last[0])}")
    return "; ".join(said) or None


def is_sticky(outcome):
    """Whether a program ran into an error that, under MPS, reaches others."""
    return bool(STICKY.search(outcome.out) or STICKY.search(outcome.err))


def signature(outcome):
    """How a program ended and which errors it met, whichever of its calls met them."""
    return outcome.status_text(), tuple(sorted(set(ERROR.findall(outcome.out + outcome.err))))


def unsound(program, first, second):
    """Why two plain runs of a program say nothing about others, or None."""
    for outcome in (first, second):
        if outcome.ended == "timeout":
            return f"plain: {outcome.status_text()}"
        if outcome.status != 0 and not program.at_fault:
            last = (outcome.err.strip() or outcome.out.strip()).splitlines()
            return f"plain: {outcome.status_text()}" + (f": {last[-1][:LONGEST]}" if last else "")
    apart = difference(first, second, program.unordered, program.ignore)
    return f"two plain runs differ: {apart}" if apart else None
