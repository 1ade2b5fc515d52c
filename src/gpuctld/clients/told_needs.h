// What a client says that its workers take of an SM (ipc::Needs), as far as it can be right.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ipc/stub.h"
#include "sched/residency/footprint.h"

namespace gpuctl::daemon {

class ToldNeeds {
 public:
  /// True if anything changed. A kernel of which an SM of the device would hold more or fewer workers than the client
  /// says makes all of it unknown: then something that counts was not told.
  bool read(const ipc::Needs& shared, const sched::SmLimits& sm);
  /// Nothing is known from now on. True if anything was.
  bool forget();

  /// Valid until the next call.
  sched::Footprint footprint() const { return {.blocks = {blocks_.data(), count_}}; }

 private:
  std::array<sched::BlockShape, ipc::kMostNeeds> blocks_{};
  std::uint32_t count_ = 0;
};

}  // namespace gpuctl::daemon
