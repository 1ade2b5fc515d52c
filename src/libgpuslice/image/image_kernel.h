// What is known of one kernel of an image from its PTX.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libgpuslice/image/kernels.h"
#include "ptx/blocks_wait.h"
#include "ptx/persistent_abi.h"

namespace gpuslice {

struct ImageKernel {
  std::string name;
  bool persistent = false;        ///< it has a form that gives SMs back
  std::string reason;             ///< why it has or lacks that form; one line
  std::vector<Parameter> params;  ///< the program's own
  std::uint32_t args_offset = 0;
  bool needs_whole_warps = false;
  bool words_behind = false;  ///< gpuctl::ptx::EntryReport::words_behind
  gpuctl::ptx::BlocksWait blocks_wait = gpuctl::ptx::BlocksWait::kUnknown;

  /// Name of the entry that was added for it.
  std::string added_entry() const { return name + gpuctl::ptx::kPersistentSuffix; }
};

}  // namespace gpuslice
