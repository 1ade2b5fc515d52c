// Weighted max-min division in whole CapSM: pour `amount` into vessels whose widths are the weights and whose heights
// are bounded by their room, until it is used up or all are full.
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

/// Holds scratch space, so that a division allocates nothing once it has seen the largest case. Not thread-safe.
class WaterFiller {
 public:
  /// Fills `poured` (as long as `vessels`); its sum is min(amount, sum of rooms). Rounding is by largest remainder,
  /// ties in the order of the vessels starting at `turn` modulo their number. While there is enough, every vessel with
  /// room gets at least 1; when there is not, each gets 1 or none and the turn alone decides, so that with a rising
  /// turn everybody gets some.
  void fill(std::span<const Vessel> vessels, CapSM amount, std::uint64_t turn, std::span<CapSM> poured);

  /// Scratch for callers that build their vessels one division at a time; contents do not survive fill's caller.
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
