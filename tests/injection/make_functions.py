#!/usr/bin/env python3
"""Lists what a libcuda.so.1 exports, for the proxy that stands in front of it: make_functions.py LIBRARY OUTPUT. One
X(number, name) a line."""

import pathlib
import subprocess
import sys


def main():
    library, output = sys.argv[1:]
    symbols = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    rows = (line.split() for line in symbols.splitlines())
    names = sorted(
        {row[2].partition("@")[0] for row in rows if len(row) == 3 and row[1] in "TtWi" and row[2].startswith("cu")}
    )
    pathlib.Path(output).write_text("".join(f"X({number}, {name})\n" for number, name in enumerate(names)))


if __name__ == "__main__":
    main()
