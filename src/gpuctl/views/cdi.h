// Devices of the Container Device Interface: a container that asks for the device of a slice runs its programs in it.
#pragma once

#include <string>
#include <vector>

#include "ipc/types.h"

namespace gpuctl::cli {

/// What of the host a container gets; absolute paths.
struct CdiPlan {
  std::string socket;
  std::string library;         ///< a libgpuslice.so with ld.so.preload and libgpuslice-preload.so beside it
  std::string compile_helper;  ///< empty if it lies beside the library
  std::string gpuctl;
  std::string software_gpu;  ///< directory of the software libcuda.so.1; empty: the GPUs are NVIDIA's
};

struct CdiDocument {
  std::string json;                   ///< empty if there is no device: such a document is not valid
  std::vector<std::string> nameless;  ///< slices whose names no device can have
};

/// One device for each slice but the root, by name. The same slices give the same text, in whatever order.
CdiDocument cdi_document(const CdiPlan& plan, const std::vector<ipc::Slice>& slices);

}  // namespace gpuctl::cli
