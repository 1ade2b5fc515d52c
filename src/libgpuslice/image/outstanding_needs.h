// What the workers of outstanding launches take of an SM, as the daemon is told of it (ipc::Needs).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ipc/stub.h"

namespace gpuslice {

/// Counts outstanding launches by what a worker takes. Not thread-safe.
class OutstandingNeeds {
 public:
  void add(const gpuctl::ipc::WorkerNeeds& needs);
  /// It was added.
  void remove(const gpuctl::ipc::WorkerNeeds& needs);

  /// The different ones among the outstanding launches. Empty if there are more than ipc::kMostNeeds.
  std::span<const gpuctl::ipc::WorkerNeeds> kinds() const;
  /// Changes whenever a launch is added of which there was no like.
  std::uint32_t gained() const { return gained_; }

 private:
  std::array<gpuctl::ipc::WorkerNeeds, gpuctl::ipc::kMostNeeds> kinds_{};
  std::array<std::uint32_t, gpuctl::ipc::kMostNeeds> launches_{};
  std::uint32_t count_ = 0;
  std::uint32_t others_ = 0;  ///< launches for which there was no place
  std::uint32_t gained_ = 0;
};

}  // namespace gpuslice
