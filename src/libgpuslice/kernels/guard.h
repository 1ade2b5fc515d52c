// Whether kernels that can only be guarded are. They are not unless the user asks for it: it costs them some percent,
// and gains other clients little where the GPU itself places blocks of a greater priority first (docs/measurements.md,
// "Guarded kernels").
#pragma once

#include <string_view>

#include "libgpuslice/process/environment.h"

namespace gpuslice {

enum class Guard {
  kNever,
  kInCompany,  ///< GPUSLICE_GUARD=1: where it is worth its cost (Context::why_unguarded)
  kAlways,     ///< GPUSLICE_GUARD=always
};

/// What the environment said at the first call. Any thread.
inline Guard guard() {
  static const Guard wanted = [] {
    const char* text = environment("GPUSLICE_GUARD");
    const std::string_view said = text ? text : "";
    return said == "always" ? Guard::kAlways : said == "1" ? Guard::kInCompany : Guard::kNever;
  }();
  return wanted;
}

}  // namespace gpuslice
