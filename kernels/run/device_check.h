// Compares outputs with the CPU's reference on the GPU itself, so that a result of hundreds of MiB costs no more than
// reading it once there. The comparison is a kernel like any other; the last result of a run is read back besides.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "kernels/run/gpu.h"
#include "kernels/run/workbench.h"

namespace gpuctl::bench {

class DeviceCheck {
 public:
  /// Uploads the bench's reference, which it must have been made with.
  explicit DeviceCheck(Workbench& bench);

  /// Fills an output with the problem's poison, and its scratch buffers, by memsets on the GPU; returns when that is in
  /// place.
  void poison(std::size_t output);

  /// Nothing when the output is right, else one line that says how many words are not. The run into it must be
  /// complete.
  std::optional<std::string> verify(std::size_t output);

 private:
  Workbench& bench_;
  CUfunction function_;
  Stream stream_{Priority::kHigh};
  DeviceMemory reference_;
  DeviceMemory equal_;
  PinnedWords count_{1};
};

}  // namespace gpuctl::bench
