#include "sched/admission.h"

#include <algorithm>

#include "sched/latency/time_text.h"

namespace gpuctl::sched {

namespace {

constexpr double kSure = 1.1;

/// What bursts take alone, as one member of LatencyPromise has it.
using TakesAlone = std::chrono::nanoseconds LatencyPromise::*;

std::string takes(const LatencyPromise& promise, TakesAlone alone) {
  return promise.path + ((promise.*alone).count() == 0 ? "" : " (" + time_text(promise.*alone) + " alone)");
}

/// Why the slices of which `wanted` is one cannot all be in time where their bursts come together, if these take
/// `sure` times as long as their targets allow; "": they can.
std::string together(const LatencyPromise& wanted, std::span<const LatencyPromise> others, TakesAlone alone,
                     double sure) {
  std::vector<const LatencyPromise*> all{&wanted};
  for (const LatencyPromise& other : others)
    if (other.by_turns && other.alone.count() > 0 && other.alone <= other.at_most()) all.push_back(&other);
  std::ranges::stable_sort(all, {}, &LatencyPromise::at_most);
  std::chrono::nanoseconds sum{};
  std::string named;
  bool concerned = false;
  for (const LatencyPromise* promise : all) {
    sum += promise->*alone;
    named += (named.empty() ? "" : " and ") + takes(*promise, alone);
    // Nobody waits for bursts that are not known.
    concerned = promise == &wanted || (concerned && (wanted.*alone).count() > 0);
    const double at_most = sure * static_cast<double>(promise->at_most().count());
    if (concerned && promise != all.front() && static_cast<double>(sum.count()) > at_most)
      return "where bursts of " + named + " come together, the last one takes " + time_text(sum) +
             ", and the laxest of their targets is " + time_text(promise->at_most());
  }
  return {};
}

}  // namespace

std::chrono::nanoseconds LatencyPromise::at_most() const {
  if (target.at_most.count() > 0) return target.at_most;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(target.multiple * static_cast<double>(alone.count())));
}

Admission admit(const LatencyPromise& wanted, std::span<const LatencyPromise> others) {
  Admission admission;
  if (wanted.at_most().count() == 0) return admission;
  const auto at_most = static_cast<double>(wanted.at_most().count());
  if (static_cast<double>(wanted.alone_at_least.count()) > kSure * at_most) {
    admission.refused = time_text(wanted.at_most()) + ": the p99 of its bursts was " +
                        time_text(wanted.alone_at_least) + " or more while nobody else had work";
    return admission;
  }
  if (wanted.alone > wanted.at_most()) {
    admission.notes.push_back("latency " + time_text(wanted.at_most()) + " may never be met: programs in " +
                              wanted.path + " took " + time_text(wanted.alone) + " while nobody else had work");
    return admission;
  }
  if (!wanted.by_turns) return admission;
  if (const std::string why = together(wanted, others, &LatencyPromise::alone_at_least, kSure); !why.empty())
    admission.refused = time_text(wanted.at_most()) + ": " + why;
  else if (std::string doubt = together(wanted, others, &LatencyPromise::alone, 1); !doubt.empty())
    admission.notes.push_back(std::move(doubt));
  return admission;
}

Unpromised room_for(const SliceTree& tree, std::string_view path, std::uint64_t memory) {
  const std::string_view parent = parent_path(path);
  const Slice& above = *tree.find(parent);
  Unpromised room;
  for (const auto& [other, slice] : tree.slices()) {
    if (other == "/" || other == path || parent_path(other) != parent) continue;
    room.reserved += slice.reserve;
    room.memory_kept += slice.memory_min;
  }
  const CapSM sms = std::min(above.reserve, above.max);
  const std::uint64_t bytes = parent == "/" ? memory : above.memory_min;
  room.reserve_free = sms > room.reserved ? sms - room.reserved : CapSM{};
  room.memory_free = bytes - std::min(bytes, room.memory_kept);
  return room;
}

}  // namespace gpuctl::sched
