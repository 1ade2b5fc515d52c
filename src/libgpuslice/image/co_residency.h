// Co-residency: in some launches, blocks must be on the GPU at the same time because they wait for each other. These
// are all blocks of a cooperative grid, or the blocks of each cluster. Pure.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string_view>

namespace gpuslice {

struct CoResidency {
  std::uint64_t blocks = 1;   ///< how many must run at the same time; 1: blocks are independent
  bool near = false;          ///< they must be on SMs that are near each other
  std::uint64_t cluster = 1;  ///< blocks of the clusters in which they run, also where all must run at the same time
  const char* how = nullptr;  ///< what kind of launch it is, for people, if `blocks` is above 1

  explicit operator bool() const { return how != nullptr; }
};

/// Whether the kernel is known by its name for blocks that wait for any other block of an ordinary launch. Such are
/// solvers of sparse triangular systems and factorizations, triangular solves of cuBLAS, persistent recurrent layers,
/// and collectives. Of other machine code nothing is known (whole_grid.h).
bool blocks_may_wait(std::string_view kernel);

/// The co-residency that a launch of `blocks` blocks with these attributes needs.
CoResidency co_residency_of(const CUlaunchAttribute* attributes, unsigned count, std::uint64_t blocks);

inline constexpr std::uint32_t kAllSms = 0xffffffff;

/// The fewest SMs of a part of the GPU on which such a launch can run, if one SM holds `per_sm` of its blocks. kAllSms
/// if no part is certain to do.
std::uint32_t sms_for(const CoResidency& co_residency, std::uint64_t per_sm);

}  // namespace gpuslice
