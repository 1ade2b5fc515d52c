#!/usr/bin/env python3
"""Writes a header with a number that changes with the rewriter: make_rewriter_version.py SRC_DIR OUTPUT DEPFILE.

The number is a hash of the sources that make rewritten text and its description. The depfile names these sources, and
their directories, so that new sources count too."""

import hashlib
import pathlib
import sys

source, output, depfile = map(pathlib.Path, sys.argv[1:])
rooms = ("container", "lexical", "syntax", "analysis", "waiting", "pass", "worker")
directories = [source / "ptx", *(source / "ptx" / room for room in rooms)]
files = sorted(
    path
    for directory in directories
    for path in directory.iterdir()
    if path.name.endswith((".h", ".cc", ".ptx.in", "embed_worker.py")) and not path.stem.endswith("_test")
)
files += [
    source / "libgpuslice" / name
    for name in ("image/image_kernel.h", "image/kernels.h", "image/forms.cc", "image/register_limit.cc")
]
files += [source / "base" / name for name in ("result.h", "sm_range.h")]
files += sorted((source / "gpuslice-compile").glob("*.cc"))
sha = hashlib.sha256()
for path in files:
    content = path.read_bytes()
    sha.update(f"{path.relative_to(source)} {len(content)}\n".encode() + content)
output.write_text(
    "// The sources of the rewriter, as a number.\n#pragma once\n\n#include <cstdint>\n\nnamespace gpuslice {\n"
    f"inline constexpr std::uint64_t kRewriterVersion = 0x{sha.hexdigest()[:16]};\n}}  // namespace gpuslice\n"
)
depfile.write_text(f"{output}: " + " ".join(str(path).replace(" ", "\\ ") for path in files + directories) + "\n")
