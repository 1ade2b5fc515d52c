"""What a library needs of the C library of the system that loads it."""

import re
import subprocess

NEWEST_GLIBC = (2, 34)  # the oldest C library that must load libgpuslice


def too_new(library):
    """The symbols that the library needs of a newer C library than that. None is right; it needs some."""
    listed = subprocess.run(["objdump", "-T", library], capture_output=True, text=True, check=True, timeout=60).stdout
    wanted = re.findall(r"\(GLIBC_([\d.]+)\)\s+(\S+)", listed)
    assert wanted, f"{library} needs no C library"
    return [name for version, name in wanted if tuple(map(int, version.split("."))) > NEWEST_GLIBC]
