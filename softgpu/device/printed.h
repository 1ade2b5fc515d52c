// Output of kernels. The software GPU keeps it until the program waits for the GPU, as a GPU's driver does. So it never
// comes between the lines that the program itself prints before and after a launch.
#pragma once

#include <string_view>

#include "softgpu/engine/engine.h"

namespace gpuctl::softgpu {

/// Keeps the output of kernels, for standard output, and their failed assertions, for standard error. Any thread.
class Printed : public engine::PrintSink {
 public:
  void print(std::string_view text) override;
  void assertion_failed(std::string_view line) override;
};

/// Writes the kept output when it goes out of scope. It is the first object in each call that waits for the GPU, so the
/// output is written on every return path. Any thread.
struct WritesWhatWasPrinted {
  WritesWhatWasPrinted() = default;
  WritesWhatWasPrinted(const WritesWhatWasPrinted&) = delete;
  WritesWhatWasPrinted& operator=(const WritesWhatWasPrinted&) = delete;
  ~WritesWhatWasPrinted();
};

}  // namespace gpuctl::softgpu
