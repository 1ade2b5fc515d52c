"""gpuctl-mount: its options, which are there without pyfuse3 too."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .daemon import default_socket
from .errors import Error


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="gpuctl-mount", description="Slices of gpuctld as directories.")
    parser.add_argument("directory")
    parser.add_argument("--socket", default=default_socket(), help="of gpuctld")
    options = parser.parse_args(arguments)
    try:
        from .mount import mount

        mount(options.directory, options.socket)
    except ModuleNotFoundError as missing:
        print(f"gpuctl-mount: there is no {missing.name}: install python3-pyfuse3", file=sys.stderr)
        return 1
    except (Error, OSError, RuntimeError) as error:
        print(f"gpuctl-mount: {error}", file=sys.stderr)
        return 1
    return 0
