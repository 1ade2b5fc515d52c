"""Names each figure that is worse than in an earlier measurement by more than its spread.

python3 -m bench.compare [--once PERCENT] OLD NEW
"""

import argparse
import sys

from .figures import read
from .judge import worse

ONCE_PER_CENT = 5


def report(old, new, once_per_cent):
    """The lines to print, and whether a figure of gpuctl is worse."""
    (before, unread), (after, _) = read(old), read(new)
    common = [name for name in before if name in after]
    changes = worse(before, after, once_per_cent)
    ours, others = ([change for change in changes if change.ours is mine] for mine in (True, False))
    lines = [f"worse: {change.line()}" for change in ours]
    lines += [f"worse, but not of gpuctl: {change.line()}" for change in others]
    lines.append(
        f"{len(common)} figures are in both; {len(ours)} of gpuctl are worse. Only in {old}: "
        f"{len(before) - len(common)}; only in {new}: {len(after) - len(common)}; "
        f"without a number to compare: {len(unread)}"
    )
    if not common:
        lines.append("nothing was compared")
    return lines, bool(ours) or not common


def main():
    parser = argparse.ArgumentParser(prog="python3 -m bench.compare", description=__doc__.split("\n")[0])
    parser.add_argument("old", help="raw.jsonl or table.txt of scripts/measure.sh, or corun.json of bench/corun.sh")
    parser.add_argument("new", help="a later one")
    parser.add_argument(
        "--once",
        type=float,
        default=ONCE_PER_CENT,
        metavar="PERCENT",
        help="what a figure that both measured once may lose (default: %(default)s)",
    )
    options = parser.parse_args()
    try:
        lines, failed = report(options.old, options.new, options.once)
    except (OSError, ValueError) as error:
        sys.exit(f"compare: {error}")
    print("\n".join(lines))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
