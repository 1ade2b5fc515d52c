// Copies of a graph whose kernels run in a part of the GPU (a green context), in whichever stream the copy is launched.
//
// A kernel node is confined if it was captured in a stream of the part. A node that is made for the part's context, or
// changed to have it, is not (bench/results/probe-graph-nodes.txt). So each kernel of the
// copy is captured again, into the copy, and takes the place of the node that was there.
#pragma once

#include <cuda.h>

namespace gpuslice {

struct GraphCopy {
  CUgraphExec exec = nullptr;  ///< null: there is none
  const char* none = nullptr;  ///< why, as `gpuctl explain` says it of its kernels; lives forever
};

/// Whether the driver has all that is needed.
bool can_copy_graphs();

/// A copy of `graph`, which stays as it is. Null: graphs that allocate memory cannot be copied.
CUgraph clone_of(CUgraph graph);

/// Instantiates a copy of `graph` with these flags, with all its kernels in the part of `stream`, into which nothing
/// else may be launched meanwhile. The caller owns the result. The context must be current, and no capture may forbid
/// it to this thread (relaxed_capture.h).
GraphCopy copy_in_part(CUgraph graph, unsigned long long flags, CUstream stream);

}  // namespace gpuslice
