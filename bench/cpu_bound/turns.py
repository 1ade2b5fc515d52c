"""What the programs beside this file share: they run a loop that is bound by its CPU, in turns with others.

A program prepares a step and calls main(). It prints READY after some steps; each line on its standard input says for
how many seconds to run, and it answers with the steps and the seconds that they took, the GPU's work included.
"""

import sys
import time

WARM_UPS = 20


def need(*modules):
    """Imports these modules; ends the program with status 77 if one is missing."""
    found = []
    for name in modules:
        try:
            found.append(__import__(name, fromlist=["x"]))
        except ImportError as error:
            print(f"Python has no {name} here: {error}", file=sys.stderr)
            sys.exit(77)
    return found[0] if len(found) == 1 else found


def main(step, wait):
    """`step()` queues a step's work, `wait()` waits for the GPU."""
    for _ in range(WARM_UPS):
        step()
    wait()
    print("READY", flush=True)
    for line in sys.stdin:
        until = float(line)
        begin, steps = time.perf_counter(), 0
        while time.perf_counter() - begin < until:
            for _ in range(5):
                step()
            wait()
            steps += 5
        print(f"{steps} {time.perf_counter() - begin:.6f}", flush=True)
