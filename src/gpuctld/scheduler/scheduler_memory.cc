// Memory limits. A limit holds for each GPU and for all programs in a slice and below it together. The daemon adds up
// what they hold. A limited program asks before each allocation, so of two that ask at the same time only one gets the
// last bytes. What programs held before the limit was set counts too, by their stub pages. Nothing is taken away: if a
// limit is set below what is held, or if a program that holds memory joins, no program there gets more.
#include <algorithm>
#include <string_view>

#include "gpuctld/scheduler/scheduler.h"

namespace gpuctl::daemon {

namespace {

/// Calls `visit(path, limit)` for the slice and each one above it that has a limit.
template <class Visit>
void each_limit(const sched::SliceTree& tree, std::string_view path, Visit visit) {
  for (;; path = sched::parent_path(path)) {
    const sched::Slice* slice = tree.find(path);
    if (slice != nullptr && slice->memory_max) visit(path, *slice->memory_max);
    if (path == "/") return;
  }
}

/// Whether `path` is `above`, or below it.
bool is_within(std::string_view path, std::string_view above) {
  while (path != above && path != "/") path = sched::parent_path(path);
  return path == above;
}

}  // namespace

Scheduler::MemoryAnswer Scheduler::hold_memory(Client& client, std::size_t index, std::uint64_t bytes) {
  MemoryAnswer answer;
  Client::Slot& own = client.slots()[index];
  if (own.device < 0) return answer;
  const std::uint64_t size = devices_[static_cast<std::size_t>(own.device)].memory_bytes;
  std::uint64_t most = 0;  // what the client may hold
  each_limit(tree_, client.slice(), [&](std::string_view path, std::uint64_t limit) {
    std::uint64_t others = 0;
    for (const Client& other : clients_) {
      if (&other == &client || !is_within(other.slice(), path)) continue;
      for (std::size_t slot = 0; slot < other.slots().size(); ++slot)
        if (other.slots()[slot].device == own.device) others += other.memory(slot, size);
    }
    const std::uint64_t left = limit - std::min(limit, others);
    most = answer.total ? std::min(most, left) : left;
    answer.total = std::min(answer.total.value_or(limit), limit);
  });
  if (!answer.total) return answer;
  answer.granted = bytes <= most || bytes <= own.promised;
  if (answer.granted) own.promised = bytes;
  const std::uint64_t held = client.memory(index, size);
  answer.free = most - std::min(most, held);
  return answer;
}

}  // namespace gpuctl::daemon
