// Launches some of whose blocks must be on the GPU at the same time, because they wait for each other: all of a
// cooperative grid, those of each cluster. Pure.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string_view>

namespace gpuslice {

struct Together {
  std::uint64_t blocks = 1;   ///< at the same time; 1: each goes by itself
  bool near = false;          ///< on SMs that are near each other
  const char* how = nullptr;  ///< for people, when more than one: how the launch is

  explicit operator bool() const { return how != nullptr; }
};

/// Whether the kernel is known for blocks that wait for any other block of an ordinary launch, so that all must be on
/// the GPU at the same time though nobody says so: solvers of sparse triangular systems and factorizations, triangular
/// solves of cuBLAS, persistent recurrent layers, collectives. By its name, as nothing else is known of machine code.
bool blocks_may_wait(std::string_view kernel);

/// What a launch of `blocks` blocks with these attributes needs.
Together blocks_together(const CUlaunchAttribute* attributes, unsigned count, std::uint64_t blocks);

inline constexpr std::uint32_t kAllSms = 0xffffffff;

/// The least SMs of a part of the GPU on which that can run, when one SM holds `per_sm` of its blocks; kAllSms where it
/// is not certain for any part.
std::uint32_t sms_for(const Together& together, std::uint64_t per_sm);

}  // namespace gpuslice
