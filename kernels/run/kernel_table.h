// The benchmark kernels, one row each.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/problem/problem.h"

namespace gpuctl::bench {

/// trivial: for an interpreter or a quick test; small: some 10 us on a data-centre GPU; large: 100 us and more.
enum class Size { kTrivial, kSmall, kLarge };
inline constexpr std::array<std::string_view, 3> kSizeNames = {"trivial", "small", "large"};

struct KernelSpec {
  std::string_view name;        ///< also the name of the entry in the PTX, unless there are several
  std::string_view papers;      ///< that use it: FLEP, FRS, SiM, SMGuard, EffiSha; empty: none
  std::string_view parameters;  ///< of the kernel, in order; of several entries: "entry: parameters; entry: parameters"
  std::string_view extent;      ///< what Extent counts
  std::string_view ptx;         ///< NUL-terminated
  std::array<Extent, 3> sizes;  ///< by Size
  bool tunable;                 ///< extent is blocks, iterations: both can be chosen freely and calibrated
  Problem (*generate)(const Extent&, std::uint64_t seed);
  Words (*reference)(const Extent&, const Problem&);
};

/// All kernels, in the order in which they are listed.
std::span<const KernelSpec> kernel_table();

/// The row of that name, or null.
const KernelSpec* find_kernel(std::string_view name);

}  // namespace gpuctl::bench
