// Weighted max-min division in whole CapSM: pours `amount` into vessels until it is used up or all are full. A vessel's
// width is its weight; its room is the most that it takes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/capsm.h"

namespace gpuctl::sched {

struct Vessel {
  CapSM room{};
  std::uint32_t weight = 1;  ///< at least 1
};

/// Holds scratch space, so that it allocates nothing once it has seen the largest case. Not thread-safe.
class WaterFiller {
 public:
  /// Fills `poured` (as long as `vessels`); its sum is min(amount, sum of rooms). Rounding is by largest remainder,
  /// ties in the order of the vessels starting at `turn` modulo their number. If `amount` is enough for 1 each, every
  /// vessel with room gets at least 1. If not, each gets 1 or none and the turn alone decides; as the turn rises, every
  /// vessel gets some.
  void fill(std::span<const Vessel> vessels, CapSM amount, std::uint64_t turn, std::span<CapSM> poured);

  /// Scratch for callers that build their vessels one division at a time. Not valid after the caller of fill() returns.
  std::vector<Vessel> vessels;
  std::vector<CapSM> poured;

 private:
  struct Open {
    std::uint32_t index;
    std::uint32_t weight;
    std::uint64_t key;
    std::uint32_t room;
  };
  void lift_empty(std::span<const Vessel> vessels, std::span<CapSM> poured);

  std::vector<Open> open_;
};

}  // namespace gpuctl::sched
