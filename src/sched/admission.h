// Whether a target of latency can be kept, by what is known of the slice's bursts and those of others. What is not
// known admits. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/latency_text.h"
#include "sched/slice_tree.h"

namespace gpuctl::sched {

/// A slice with a target, or one that is to have it.
struct LatencyPromise {
  std::string path;
  LatencyTarget target;
  std::chrono::nanoseconds alone{};  ///< p99 of its bursts while nobody else has work; 0: not known
  /// The least that this was at any time since its programs and limits are what they are; 0: not known. It is no more
  /// than `alone`.
  std::chrono::nanoseconds alone_at_least{};
  bool by_turns = false;  ///< others have nothing of the GPU while its programs have it

  /// The target as a time; 0: not known.
  std::chrono::nanoseconds at_most() const;
};

struct Admission {
  std::string refused;             ///< why it cannot be kept; "": it is admitted
  std::vector<std::string> notes;  ///< why it may not be kept
};

/// Whether programs take the same alone with both settings.
inline bool same_but_target(const Slice& a, Slice b) {
  b.latency = a.latency;
  return a == b;
}

/// *Refused* is a time of which the slice's programs took more at all times, though nobody else had work: by a tenth at
/// least, as no percentile is exact. So is one beside promised ones where slices have the GPU by turns and their bursts
/// may come together. Then the best order is that of the targets, and each slice waits for what the stricter ones take.
/// Of a slice whose bursts are not known, these take no time. *Noted* is a time of which they may take more: they have
/// taken more, but other programs or other limits may be there now, or it is closer than a tenth.
Admission admit(const LatencyPromise& wanted, std::span<const LatencyPromise> others);

/// What the slices beside one are promised of a GPU, and what can still be promised to it.
struct Unpromised {
  CapSM reserved{}, reserve_free{};
  std::uint64_t memory_kept = 0, memory_free = 0;  ///< bytes
};

/// `tree`: as it is on one GPU, of `memory` bytes. What the slice is promised itself is part of what is free for it.
/// The root has what it has not promised to those below it.
Unpromised room_for(const SliceTree& tree, std::string_view path, std::uint64_t memory);

}  // namespace gpuctl::sched
