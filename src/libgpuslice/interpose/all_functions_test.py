#!/usr/bin/env python3
"""Each function of cuda.h that launches, copies, allocates, or is about graphs must have a hook, or stand here with the
reason why it passes through to the driver.

  all_functions_test.py INCLUDE_DIRECTORY SOURCE_DIRECTORY

With the headers of a newer CUDA than the toolkit's:

  pip download --no-deps nvidia-cuda-runtime==13.5.* && unzip nvidia_cuda_runtime-*.whl
  GPUCTL_CUDA_INCLUDE=nvidia/cu13/include meson test -C build gpuslice-all_functions gpuslice-stream_functions
"""

import re
import sys

from stream_functions_test import all_of_header, directories, rows_of

LEAST = 300  # fewest such functions; with fewer, the header was not parsed correctly
KINDS = re.compile(
    "Launch|Memcpy|Memset|Cpy|Copy|Prefetch|Alloc|Array|MemCreate|Pool|Import|IpcOpen|Multicast|LogicalEndpoint|Graph"
    "|Capture|MemHost|MemMap|External"
)
# cuGraphAddKernelNode and its like name one kind of node each.
NODES = (
    "BatchMemOp|ChildGraph|EventRecord|EventWait|ExternalSemaphoresSignal|ExternalSemaphoresWait|Host|Kernel|MemAlloc"
    "|MemFree|Memcpy|Memset"
)
PASSES = {
    "a graph of the program is looked at when it is instantiated, and what it allocates counts when it is launched": (
        rf"cuGraphAdd(Empty|{NODES})Node(_v\d)?",
        rf"cuGraph({NODES})NodeSet(Params|Event|Attribute)(_v\d)?",
        r"cuGraphNodeSetParams(_v\d)?",
        r"cuGraphKernelNodeCopyAttributes",
        r"cuGraph(Add|Remove)Dependencies(_v\d)?",
        r"cuGraph(Create|Clone|ConditionalHandleCreate|RetainUserObject|ReleaseUserObject)",
    ),
    "it answers from what the host knows, or changes nothing but that": (
        rf"cuGraph({NODES})NodeGet(Params|Event|Graph|Attribute)(_v\d)?",
        r"cuGraphNodeGet(Type|Enabled|Params|LocalId|ToolsId|ContainingGraph)",
        r"cuGraphNodeGet(Dependencies|DependentNodes)(_v\d)?",
        r"cuGraphGet(Nodes|RootNodes|Edges|Id)(_v\d)?",
        r"cuGraph(NodeFindInClone|DebugDotPrint|ExecGetId)",
        r"cuArray(3D)?GetDescriptor_v2",
        r"cu(Array|MipmappedArray)Get(MemoryRequirements|SparseProperties|Plane|Level)",
        r"cuGraphics(.*GetMapped.*|UnregisterResource|ResourceSetMapFlags(_v2)?)",
        r"cuTexRefGet\w+",
        r"cuTexRefSet\w+",
        r"cuSurfRef[GS]et\w+",
        r"cuMemHostGet(DevicePointer_v2|Flags)",
        r"cuMemGetAllocation(Granularity|PropertiesFromHandle)",
        r"cuMulticastGetGranularity",
        r"cuMemPoolGet(Access|Attribute)",
        r"cuDevice(Get|Set)GraphMemAttribute",
        r"cuDeviceGet(DefaultMemPool|MemPool)",
        r"cuTensorMapSetAllocationClass",
        r"cuLogicalEndpoint(Query|GetLimits)",
        # No lane opens while anything is captured (joining.h).
        r"cuStreamGetCaptureInfo(_v\d)?(_ptsz)?",
        r"cuThreadExchangeStreamCaptureMode",
        r"cuStreamUpdateCaptureDependencies(_v\d)?(_ptsz)?",
    ),
    "the memory is the host's": (r"cuMem(AllocHost(_v2)?|HostAlloc|HostRegister(_v2)?)",),
    "the memory counts where it was made: in another process, by another interface, or by cuMemCreate": (
        r"cuIpcOpen(Mem|Event)Handle(_v2)?",
        r"cuMem(ImportFromShareableHandle|PoolImportFromShareableHandle|PoolImportPointer)",
        r"cuMemPoolExport(ToShareableHandle|Pointer)",
        r"cuImportExternal(Memory|Semaphore)",
        r"cuExternalMemoryGetMapped(Buffer|MipmappedArray)",
        r"cuDestroyExternal(Memory|Semaphore)",
        r"cuMulticast(Create|AddDevice|Bind(Mem|Addr)(_v2)?|Unbind)",
        r"cuLogicalEndpoint(IdReserve|IdRelease|Create|Destroy|AddDevice|Bind(Mem|Addr)|Unbind|Export|Import)",
    ),
    "it says from which pool later calls allocate, which find that out": (
        r"cuDeviceSetMemPool",
        r"cuMemSetMemPool",
        r"cuMemPool(SetAccess|SetAttribute|TrimTo)",
    ),
}


def main():
    include, sources = directories(sys.argv[1:])
    functions = {name for name in all_of_header((include / "cuda.h").read_text()) if KINDS.search(name)}
    rows, noted = rows_of(sources)
    hooked = {row[0] for row in rows + noted}
    passes = [re.compile(pattern) for patterns in PASSES.values() for pattern in patterns]
    missing = sorted(name for name in functions - hooked if not any(pattern.fullmatch(name) for pattern in passes))
    both = sorted(name for name in functions & hooked if any(pattern.fullmatch(name) for pattern in passes))
    for name in missing:
        print(f"{name}: has no hook, and no reason here why it needs none")
    for name in both:
        print(f"{name}: has a hook, and a reason here why it needs none")
    print(f"{len(functions)} functions launch, copy, allocate or are about graphs; {len(missing)} are missing")
    sys.exit(bool(missing or both) or len(functions) < LEAST)


if __name__ == "__main__":
    main()
