// Weighted max-min fair division: shares rise together, each in proportion to its claimant's weight, until the amount
// is used up or every claimant has its demand. First it is found what each claimant is due, in parts of an SM; then
// that is rounded to whole SMs. Where there are fewer SMs than claimants, one that is due a half has an SM in every
// second turn.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/capsm.h"

namespace gpuctl::sched {

/// An amount of CapSM in parts of one: what somebody is due, or what others had in its place.
using Due = std::int64_t;
inline constexpr Due kWholeSm = Due{1} << 24;

constexpr Due due_of(CapSM whole) {
  return Due{whole.count} * kWholeSm;
}

struct Claimant {
  CapSM demand{};            ///< the most that it takes
  std::uint32_t weight = 1;  ///< at least 1
};

/// Holds scratch space, so that it allocates nothing once it has seen the largest case. Not thread-safe.
class WaterFiller {
 public:
  /// What each claimant is due of `amount`, in `dues` (as long as `claimants`): together as good as min(amount, sum of
  /// demands). If `amount` is enough for 1 each, every claimant with demand is due at least 1. If not, weights alone
  /// decide.
  void share(std::span<const Claimant> claimants, Due amount, std::span<Due> dues);

  /// Rounds each of `dues` down or up, so that `parts` add up to min(amount, sum of demands). Those are rounded up
  /// whose remainder and credit are greatest; among equals the order of the claimants decides. `amount` is what the
  /// dues add up to, rounded too. `credits`: by claimant, of earlier turns (TurnAccount); empty: none.
  void round(std::span<const Claimant> claimants, std::span<const Due> dues, std::span<const Due> credits, CapSM amount,
             std::span<CapSM> parts);

  /// Both, where nobody had a turn before.
  void fill(std::span<const Claimant> claimants, CapSM amount, std::span<CapSM> parts);

  /// Scratch for callers that list their claimants one division at a time. Not valid after the caller of fill()
  /// returns.
  std::vector<Claimant> claimants;
  std::vector<CapSM> parts;

 private:
  struct Open {
    std::uint32_t index;
    std::uint32_t weight;
    Due key;
  };

  std::vector<Open> open_;
  std::vector<Due> dues_;
};

}  // namespace gpuctl::sched
