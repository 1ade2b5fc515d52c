#pragma once

#include <cstdint>
#include <string>

#include "softgpu/engine/engine.h"

namespace gpuctl::softgpu::engine {

/// A fault of the kernel being run; becomes the Error of run_block.
struct Fault {
  FaultKind kind;
  std::uint32_t line;  ///< in the PTX text
  std::string message;
};

}  // namespace gpuctl::softgpu::engine
