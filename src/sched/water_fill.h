// Weighted max-min fair division in whole CapSM: shares rise together, each in proportion to its claimant's weight,
// until `amount` is used up or every claimant has its demand.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/capsm.h"

namespace gpuctl::sched {

struct Claimant {
  CapSM demand{};            ///< the most that it takes
  std::uint32_t weight = 1;  ///< at least 1
};

/// Holds scratch space, so that it allocates nothing once it has seen the largest case. Not thread-safe.
class WaterFiller {
 public:
  /// Fills `parts` (as long as `claimants`); their sum is min(amount, sum of demands). Rounding is by largest
  /// remainder, ties in the order of the claimants starting at `turn` modulo their number. If `amount` is enough for 1
  /// each, every claimant with demand gets at least 1. If not, each gets 1 or none and the turn alone decides; as the
  /// turn rises, every claimant gets some.
  void fill(std::span<const Claimant> claimants, CapSM amount, std::uint64_t turn, std::span<CapSM> parts);

  /// Scratch for callers that list their claimants one division at a time. Not valid after the caller of fill()
  /// returns.
  std::vector<Claimant> claimants;
  std::vector<CapSM> parts;

 private:
  struct Open {
    std::uint32_t index;
    std::uint32_t weight;
    std::uint64_t key;
    std::uint32_t demand;
  };
  void lift_empty(std::span<const Claimant> claimants, std::span<CapSM> parts);

  std::vector<Open> open_;
};

}  // namespace gpuctl::sched
