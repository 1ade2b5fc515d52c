#!/usr/bin/env python3
"""Checks the hooks against cuda.h and cudaTypedefs.h. Each function of cuda.h that takes a stream or acts on a default
stream must have a hook, or be known to see nothing of what a stream has done so far (joining.h). A program that asks
for a function by its symbol and a CUDA version must get the hook of exactly that function: the hooks' rows agree with
cudaTypedefs.h, and no newer function of a hooked symbol lacks a hook.

  stream_functions_test.py INCLUDE_DIRECTORY SOURCE_DIRECTORY

GPUCTL_CUDA_INCLUDE names another include directory, such as that of a newer CUDA (all_functions_test.py says how)."""

import os
import pathlib
import re
import sys

# These answer from what the host knows of the stream, or make a stream.
SEE_NOTHING = {
    "cuStreamCreate",
    "cuStreamCreateWithPriority",
    "cuGreenCtxStreamCreate",
    "cuStreamGetPriority",
    "cuStreamGetFlags",
    "cuStreamGetId",
    "cuStreamGetDevice",
    "cuStreamGetCtx",
    "cuStreamGetCtx_v2",
    "cuStreamGetGreenCtx",
    "cuStreamGetDevResource",
    "cuStreamGetAttribute",
    "cuOccupancyMaxActiveClusters",
    "cuOccupancyMaxPotentialClusterSize",
    # These concern captures. A stream has joined before it captures, and no lane opens during a capture.
    "cuStreamIsCapturing",
    "cuStreamGetCaptureInfo",
    "cuStreamGetCaptureInfo_v2",
    "cuStreamGetCaptureInfo_v3",
    "cuStreamUpdateCaptureDependencies",
    "cuStreamUpdateCaptureDependencies_v2",
}
# 64-bit programs cannot call these functions, which take 32-bit addresses and sizes.
NARROW = re.compile(
    r"CUdeviceptr_v1|CUDA_(MEMCPY[23]D|ARRAY_DESCRIPTOR|ARRAY3D_DESCRIPTOR)_v1|unsigned int (ByteCount|N)\b"
)
NOT_IN_TYPEDEFS = {"cuGraphInstantiate"}  # under its name of 12.0
LEAST = 150  # fewest such functions; with fewer, the header was not parsed correctly


def all_of_header(text):
    """Exported names, each with its parameters and whether it takes a stream or acts on a default one."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"//.*", "", text).replace("\\\n", " ")
    prototypes = [
        (name, " ".join(parameters.split()), place.start())
        for place in re.finditer(r"CUresult\s+CUDAAPI\s+(\w+)\s*\(([^;]*?)\)\s*;", text)
        for name, parameters in [place.groups()]
    ]
    # The newest of each name come first, under names that macros change; then, for the driver itself, all others as
    # they are exported.
    older = text.rindex("#if defined(__CUDA_API_VERSION_INTERNAL)")
    with_default = {
        name: (kind, exported)
        for name, kind, exported in re.findall(r"#\s*define\s+(cu\w+)\s+__CUDA_API_(PTSZ|PTDS)\((\w+)\)", text)
    }
    renamed = dict(re.findall(r"#\s*define\s+(cu\w+)\s+(cu\w+_v\d+)\s", text))
    found = {}
    for name, parameters, place in prototypes:
        kind, exported = with_default.get(name, (None, renamed.get(name, name))) if place < older else (None, name)
        takes_stream = re.search(
            r"\bCUstream\b|\bCUlaunchConfig\b|_INSTANTIATE_PARAMS\b|\bCUDA_LAUNCH_PARAMS\b", parameters
        )
        for variant in [exported] + ([exported + {"PTSZ": "_ptsz", "PTDS": "_ptds"}[kind]] if kind else []):
            if variant not in found or NARROW.search(found[variant][0]):
                found[variant] = parameters, bool(takes_stream or kind)
    return {name: found[name] for name in found if not NARROW.search(found[name][0])}


def of_header(text):
    """Exported names, each with its parameters, of what takes a stream or acts on a default one."""
    return {name: parameters for name, (parameters, streams) in all_of_header(text).items() if streams}


def version_of(text):
    return int(re.search(r"#define CUDA_VERSION (\d+)", text)[1])


def rows_of(sources):
    """The hooks' rows, of interpose.cc and of joining_functions.inc: exported name, symbol, version, per thread."""
    rows = re.findall(
        r"^    ROW\((\w+), \"(\w+)\", (\d+),\s+(true|false)\)", (sources / "interpose.cc").read_text(), re.M
    )
    noted = re.findall(r"^X\((\w+), (\w+), (\d+), (true|false),", (sources / "joining_functions.inc").read_text(), re.M)
    return rows, noted


def directories(arguments):
    include, sources = map(pathlib.Path, arguments)
    return pathlib.Path(os.environ.get("GPUCTL_CUDA_INCLUDE", include)), sources


def versions_of(typedefs):
    """(symbol, version since which it means the function, whether of the per-thread default stream), of all functions
    of the driver."""
    return {
        (symbol, int(since), bool(variant))
        for symbol, since, variant in re.findall(r"\*PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)", typedefs)
    }


def wrong_versions(hooks, functions, version):
    """One line for each row that no function of this CUDA version has, and for each newer function of a hooked symbol
    that has no row."""
    oldest = {}
    for symbol, since, _ in hooks:
        oldest[symbol] = min(since, oldest.get(symbol, since))
    unknown = [row for row in hooks - functions if row[0] not in NOT_IN_TYPEDEFS and row[1] <= version]
    newer = [row for row in functions - hooks if row[0] in oldest and row[1] >= oldest[row[0]]]
    return [f"{row}: no such function in cudaTypedefs.h" for row in sorted(unknown)] + [
        f"{row}: has no row" for row in sorted(newer)
    ]


def main():
    include, sources = directories(sys.argv[1:])
    header = (include / "cuda.h").read_text()
    functions = of_header(header)
    rows, noted = rows_of(sources)
    hooked, noticed = {row[0] for row in rows}, {row[0] for row in noted}
    wrong = wrong_versions(
        {(symbol, int(since), per_thread == "true") for _, symbol, since, per_thread in rows + noted},
        versions_of((include / "cudaTypedefs.h").read_text()),
        version_of(header),
    )
    see_nothing = SEE_NOTHING | {name + "_ptsz" for name in SEE_NOTHING}
    missing = {name: parameters for name, parameters in functions.items() if name not in hooked | noticed | see_nothing}
    for name, parameters in missing.items():
        print(f"{name}({parameters}): not in interpose.cc, joining_functions.inc, or here")
    for name in sorted(hooked & noticed):
        print(f"{name}: in interpose.cc and in joining_functions.inc")
    for line in wrong:
        print(line)
    print(f"{len(functions)} functions take a stream or act on a default one; {len(missing)} are missing")
    # Of those in interpose.cc each must say itself what joins; tests/system/programs/joining_test.py tries them.
    sys.exit(bool(missing or wrong or hooked & noticed) or len(functions) < LEAST)


if __name__ == "__main__":
    main()
