#!/usr/bin/env python3
"""Write a C++ header with each PTX file as a NUL-terminated string: embed_ptx.py OUT NAME=FILE..."""

import sys

CHUNK = 12_000  # characters: compilers promise string literals of 64 Ki only after concatenation


def constant(name, path):
    with open(path, encoding="ascii") as file:
        text = file.read()
    if ')ptx"' in text:
        sys.exit(f"{path}: cannot be embedded as a raw string")
    parts = [text[at : at + CHUNK] for at in range(0, len(text), CHUNK)]
    literal = "\n    ".join(f'R"ptx({part})ptx"' for part in parts)
    return f"inline constexpr std::string_view {name} =\n    {literal};\n"


def main():
    out, *images = sys.argv[1:]
    pairs = [image.split("=", 1) for image in images]
    body = "\n".join(constant(name, path) for name, path in pairs)
    with open(out, "w", encoding="ascii") as file:
        file.write(
            "#pragma once\n\n#include <string_view>\n\nnamespace gpuctl::bench {\n\n"
            + body
            + "\n}  // namespace gpuctl::bench\n"
        )


if __name__ == "__main__":
    main()
