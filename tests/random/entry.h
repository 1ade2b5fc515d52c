// Kernels (.entry).
#pragma once

#include <string>
#include <vector>

#include "generate.h"
#include "rng.h"

namespace gpuctl::random_kernels {

/// What a module offers its kernels.
struct Offer {
  Calls calls = Calls::kAnywhere;
  std::vector<std::string> functions;  ///< make_function
  std::string meeting;                 ///< make_meeting; none if empty
};

/// Shared variables of the module that entries may use: words, their size given and at launch.
inline constexpr char kModuleArray[] = "module_cells";
inline constexpr char kDynamicArray[] = "dynamic_cells";
inline constexpr unsigned kArrayWords = 256;

/// Fills `shape` but for its name, which is given, and returns the entry's text.
std::string make_entry(Rng& rng, const Offer& offer, KernelShape& shape);

}  // namespace gpuctl::random_kernels
