// The targets of latency of all slices on one GPU: who yields to whom, and what the dials of each slice mean for the
// tree. Peers yield: the slices below the same one, with all below these, and the programs directly in that one. So
// whoever sets a target below a slice moves nobody beyond it. A peer with a target that is as strict or stricter does
// not yield. Pure; time is an argument.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sched/allocator.h"
#include "sched/latency/steer.h"

namespace gpuctl::sched {

/// A slice whose dials are turned.
struct WithTarget {
  std::uint32_t node = 0;
  Rungs rungs{};
  /// Its target. Those with a time go before those whose time is not known yet (0).
  std::chrono::nanoseconds at_most{};

  bool stricter_than(const WithTarget& other) const {
    return at_most.count() > 0 && (other.at_most.count() == 0 || at_most < other.at_most);
  }
  int rung(Dial dial) const { return rungs[static_cast<std::size_t>(dial)]; }
};

/// Adds the SMs that are kept for each of `slices` to its reserve, the strictest first, as far as the reserve of the
/// slice above has room beside those of its siblings. `nodes` are as fit_reserves() left them; the first is the device.
void keep_for(std::span<NodeInput> nodes, std::span<const WithTarget> slices);

/// How many SMs could be kept for each of `slices`, beyond its reserve, if it and the stricter ones had what they can:
/// its peers have a quarter of what the slice above has left in any case.
std::vector<CapSM> most_kept(std::span<const NodeInput> nodes, std::span<const WithTarget> slices);

/// Raises the priorities by which levels are divided (effective/levels.h): those with Dial::level go before all peers
/// that yield. By node, what is to be added to the priorities of clients directly in it.
std::vector<std::int32_t> raise_levels(std::span<NodeInput> nodes, std::span<const WithTarget> slices);

/// By node: how long a turn of a program in it may last at most; none: as long as it would.
std::vector<std::optional<std::chrono::microseconds>> longest_turns(std::span<const NodeInput> nodes,
                                                                    std::span<const WithTarget> slices);

/// Whether `node` yields to `to`: it is the slice above or in a peer's subtree, and that peer's target is laxer.
bool yields(std::span<const NodeInput> nodes, std::size_t node, const WithTarget& to,
            std::span<const WithTarget> slices);

/// Whether `node` can be paused to see what `to` takes alone: it yields, or neither knows yet who is stricter.
bool can_be_paused(std::span<const NodeInput> nodes, std::size_t node, const WithTarget& to,
                   std::span<const WithTarget> slices);

/// The slices with a target.
class LatencyControl {
 public:
  struct Target {
    std::string path;
    std::uint32_t node = 0;
    LatencyTarget target;
  };
  struct Entry {
    std::string path;
    std::uint32_t node = 0;
    Steer steer;
  };

  /// A slice whose target stays has its dials and what is known as they are; of one that has another target, or none,
  /// it is known what it takes alone. `exists`: the paths of all slices.
  void renew(std::span<const Target> targets, const std::function<bool(const std::string& path)>& exists);
  /// Its target was set again.
  void begin_anew(std::string_view path, std::chrono::nanoseconds now);
  /// Bursts of a slice without a target, while no other slice's programs had work.
  void saw_alone(const std::string& path, const LatencyHistogram& bursts, std::chrono::nanoseconds now);
  /// `steps`: by entry, all but Steer's `last` of Dial::kept and `may_turn`. `nodes`: with the reserves as they are
  /// set. True if a dial was turned.
  bool step(std::span<const NodeInput> nodes, std::span<LatencyStep> steps);

  const std::vector<Entry>& entries() const { return entries_; }
  std::vector<WithTarget> slices() const;
  /// That for which others are paused now.
  std::optional<WithTarget> pauses() const;
  /// Null: the slice has no target.
  const Steer* find(std::string_view path) const;
  /// What is known of what the slice takes alone, with a target or without; null: nothing.
  const Alone* alone(const std::string& path) const;

 private:
  std::vector<Entry> entries_;
  std::map<std::string, Alone> alone_;  ///< of slices without a target
};

}  // namespace gpuctl::sched
