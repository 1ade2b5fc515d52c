// What kernels print. As a GPU's driver does, the software GPU keeps it until the program waits for the GPU: so it
// never comes between what the program itself printed before and after a launch.
#pragma once

#include <string_view>

#include "softgpu/engine/engine.h"

namespace gpuctl::softgpu {

/// Keeps what kernels print, for standard output, and their failed assertions, for standard error. Any thread.
class Printed : public engine::PrintSink {
 public:
  void print(std::string_view text) override;
  void assertion_failed(std::string_view line) override;
};

/// Writes what was kept when it goes out of scope: stands at the head of each call that waits for the GPU, so that it
/// is written whatever the call returns. Any thread.
struct WritesWhatWasPrinted {
  WritesWhatWasPrinted() = default;
  WritesWhatWasPrinted(const WritesWhatWasPrinted&) = delete;
  WritesWhatWasPrinted& operator=(const WritesWhatWasPrinted&) = delete;
  ~WritesWhatWasPrinted();
};

}  // namespace gpuctl::softgpu
