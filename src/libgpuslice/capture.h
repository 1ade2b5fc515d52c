// What the launch path asks about a stream.
#pragma once

#include <cuda.h>

namespace gpuslice {

/// True while a launch into `stream` would become a graph node. Costs one load unless some capture is under way.
bool capturing(CUstream stream);

/// Stream 0 spelled out: the legacy or the per-thread default stream, as the called variant means it.
CUstream explicit_stream(CUstream stream, bool per_thread);

}  // namespace gpuslice
