#!/usr/bin/env python3
"""Writes text files as C++ string constants: embed_text.py OUTPUT INPUT..., a.b.varlink becomes kEmbedded_a_b."""

import pathlib
import sys

with open(sys.argv[1], "w", encoding="utf-8") as out:
    for path in map(pathlib.Path, sys.argv[2:]):
        name = "kEmbedded_" + path.stem.replace(".", "_")
        out.write(f'constexpr std::string_view {name} = R"embedded({path.read_text(encoding="utf-8")})embedded";\n')
