// Which device memory the program allocated where, so that it is known into how much of it a launch's parameters point:
// FLEP's input size (4.2). Keeps books only: it calls neither the driver nor the daemon.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <shared_mutex>
#include <span>

namespace gpuslice {

/// Any thread. Host memory, memory of other processes and memory that a graph allocates are not known here.
class Allocations {
 public:
  /// The instance of this process; never destroyed.
  static Allocations& get();

  /// `bytes` of 0 are not noted.
  void add(CUdeviceptr address, std::uint64_t bytes);
  /// Forgets those that begin in this range. Without effect if none is known there.
  void remove(CUdeviceptr address, std::uint64_t range = 1);

  /// The sizes of all allocations into which an aligned word of `parameters` points, each counted once. A number that
  /// only looks like such an address counts too: this serves predictions, and nothing depends on it. Looks at
  /// kMostPointers words that may be addresses, no more. It takes 20 ns and, for each of these, 15 ns among ten
  /// allocations and 60 ns among a thousand (docs/design/jobs.md, "Durations").
  std::uint64_t bytes_behind(std::span<const std::byte> parameters) const;
  static constexpr std::size_t kMostPointers = 32;

  /// In a forked child.
  void forget_after_fork();

 private:
  mutable std::shared_mutex mutex_;  ///< guards everything
  std::map<CUdeviceptr, std::uint64_t> sizes_;
};

}  // namespace gpuslice
