"""Writes an empty header, which is newer than what was precompiled: ready.py HEADER."""

import pathlib
import sys

pathlib.Path(sys.argv[1]).write_text("", encoding="utf-8")
