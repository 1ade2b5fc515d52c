// Memory limits. A limit holds for each GPU and for all programs in a slice and below it together. The daemon adds up
// what they hold. A limited program asks before each allocation, so of two that ask at the same time only one gets the
// last bytes. What programs held before the limit was set counts too, by their stub pages. Nothing is taken away: if a
// limit is set below what is held, or if a program that holds memory joins, no program there gets more.
//
// Where memory is kept for a slice (memory_min) the whole GPU is such a limit too: for what all hold, and for what is
// kept and not held (sched/kept_memory.h).
//
// memory_high refuses nothing: an allocation above it is granted, and waits in the program first.
//
// What a program may hold is recorded before it is told so, for the next daemon. A program can ask before each of its
// allocations, so a little more is recorded than it asks for: as long as that covers it, nothing is written.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "gpuctld/scheduler/scheduler.h"
#include "sched/kept_memory.h"

namespace gpuctl::daemon {

namespace {

/// Calls `visit(path, limit)` for the slice and each one above it that has this limit.
template <class Visit>
void each_limit(const sched::SliceTree& tree, std::string_view path, std::optional<std::uint64_t> sched::Slice::*limit,
                Visit visit) {
  for (;; path = sched::parent_path(path)) {
    const sched::Slice* slice = tree.find(path);
    if (slice != nullptr && slice->*limit) visit(path, *(slice->*limit));
    if (path == "/") return;
  }
}

/// This part of a limit is recorded ahead, as far as nobody else needs it; twice as much before that is corrected.
constexpr std::uint64_t kRecordedAhead = 64;

/// How long an allocation waits that leaves a slice with so much above its memory_high: as the square of the part that
/// it is above, like the kernel's for memory.high, and as long as any from a quarter on.
std::chrono::microseconds wait_above(std::uint64_t held, std::uint64_t high) {
  constexpr std::chrono::microseconds kLongest = std::chrono::milliseconds(100);
  constexpr double kLongestFrom = 0.25;
  if (held <= high) return {};
  const double part = high == 0 ? 1 : static_cast<double>(held - high) / static_cast<double>(high);
  const double of_longest = std::min(part / kLongestFrom, 1.0);
  return std::chrono::microseconds(std::llround(static_cast<double>(kLongest.count()) * of_longest * of_longest));
}

}  // namespace

/// What all but the client hold together in the slice and below it. `recorded`: or what is recorded of them.
std::uint64_t Scheduler::held_by_others(const Client& client, int device, std::string_view path, bool recorded) const {
  std::uint64_t others = 0;
  for (const Client& other : clients_)
    if (&other != &client && sched::in_or_below(other.slice(), path)) others += held_on(other, device, recorded);
  return others;
}

/// What the client holds of the device, or what is recorded of it.
std::uint64_t Scheduler::held_on(const Client& client, int device, bool recorded) const {
  const std::uint64_t size = devices_[static_cast<std::size_t>(device)].memory_bytes;
  std::uint64_t all = 0;
  for (std::size_t slot = 0; slot < client.slots().size(); ++slot) {
    if (client.slots()[slot].device != device) continue;
    const std::uint64_t held = client.memory(slot, size);
    all += recorded ? std::max(held, client.slots()[slot].recorded.memory) : held;
  }
  return all;
}

std::vector<std::uint64_t> Scheduler::memory_held(std::size_t device) const {
  std::vector<std::uint64_t> held(nodes_.size());
  for (const Client& client : clients_) held[client.node] += held_on(client, static_cast<int>(device), false);
  for (std::size_t n = held.size() - 1; n > 0; --n) held[static_cast<std::size_t>(nodes_[n].parent)] += held[n];
  return held;
}

/// Of all that are above their memory_high then, the slice counts that lets it wait the longest.
void Scheduler::let_wait(const Client& client, int device, std::uint64_t bytes, MemoryAnswer& answer) const {
  const sched::SliceTree& tree = tree_on(static_cast<std::size_t>(device));
  each_limit(tree, client.slice(), &sched::Slice::memory_high, [&](std::string_view path, std::uint64_t high) {
    const auto wait = wait_above(held_by_others(client, device, path, false) + bytes, high);
    if (wait > answer.wait) answer.wait = wait, answer.decided_by = path;
  });
}

bool Scheduler::keeps_memory(std::size_t device) const {
  return std::ranges::any_of(effective_on(device), [](const sched::Effective& own) { return own.memory_min > 0; });
}

/// What the client may hold beside what is kept for others. `by`: for which slice most is kept that it does not hold.
std::uint64_t Scheduler::memory_not_kept(const Client& client, int device, bool recorded, std::string_view* by) const {
  const auto at = static_cast<std::size_t>(device);
  const std::uint64_t size = devices_[at].memory_bytes;
  std::vector<sched::KeptMemory> nodes;
  for (std::size_t n = 0; n < nodes_.size(); ++n)
    nodes.push_back({.parent = nodes_[n].parent, .kept = kept_on_[at][n]});
  for (const Client& other : clients_)
    if (&other != &client) nodes[other.node].held += held_on(other, device, recorded);
  const sched::MemoryLeft left = sched::memory_beside(nodes, client.node, size);
  if (by != nullptr && left.kept_for)
    *by = std::next(tree_.slices().begin(), static_cast<std::ptrdiff_t>(*left.kept_for))->first;
  return left.bytes;
}

/// What the limits leave to the client beside others; none: nothing limits it. `recorded`: others have what is recorded
/// of them if that is more. `refused`: gets what would refuse `bytes`. If the device is full that is its own limit
/// still, where that leaves less than that too.
std::optional<std::uint64_t> Scheduler::memory_left(const Client& client, int device, bool recorded,
                                                    MemoryAnswer* refused, std::uint64_t bytes) const {
  std::optional<std::uint64_t> least;
  const sched::SliceTree& tree = tree_on(static_cast<std::size_t>(device));
  each_limit(tree, client.slice(), &sched::Slice::memory_max, [&](std::string_view path, std::uint64_t limit) {
    const std::uint64_t left = limit - std::min(limit, held_by_others(client, device, path, recorded));
    if (least && left >= *least) return;
    least = left;
    if (refused != nullptr) refused->decided_by = path;
  });
  if (!keeps_memory(static_cast<std::size_t>(device))) return least;
  std::string_view kept_for;
  const std::uint64_t left = memory_not_kept(client, device, recorded, &kept_for);
  if (least && left >= *least) return least;
  if (refused == nullptr) return left;
  if (!kept_for.empty())
    refused->decided_by = kept_for, refused->kept = true;
  else if (!least || bytes <= *least)
    refused->decided_by = client.slice(), refused->full = true;
  return left;
}

/// Has recorded that the client may hold `bytes`. Together no more than the limit is recorded, or a program that comes
/// back to the next daemon could be promised what another one has.
bool Scheduler::record_memory(Client& client, std::size_t index, std::uint64_t bytes, std::uint64_t now_ns) {
  Client::Slot& own = client.slots()[index];
  std::uint64_t left = memory_left(client, own.device, true).value_or(0);
  if (bytes > left) {  // what is recorded ahead of others is needed
    const std::uint64_t size = devices_[static_cast<std::size_t>(own.device)].memory_bytes;
    for (Client& other : clients_)
      for (std::size_t slot = 0; slot < other.slots().size(); ++slot) {
        Client::Slot& theirs = other.slots()[slot];
        if (&theirs == &own || theirs.device != own.device) continue;
        theirs.recorded.memory = std::min(theirs.recorded.memory, other.memory(slot, size));
        theirs.to_record.memory = theirs.recorded.memory;
      }
    left = memory_left(client, own.device, true).value_or(0);
  }
  const std::uint64_t ahead = own.terms.memory_max.value_or(0) / kRecordedAhead;
  own.to_record.memory = bytes + std::min(ahead, left - std::min(left, bytes));
  return record(now_ns);
}

bool Scheduler::record_is_stale() {
  each_grants([](DeviceGrants& grants) { grants.record(); });
  bool stale = false;
  for (Client& client : clients_)
    for (std::size_t slot = 0; slot < client.slots().size(); ++slot) {
      Client::Slot& own = client.slots()[slot];
      if (own.device < 0) continue;
      const std::uint64_t size = devices_[static_cast<std::size_t>(own.device)].memory_bytes;
      const std::uint64_t limit = own.terms.memory_max.value_or(0);
      const std::uint64_t held = own.terms.memory_max ? client.memory(slot, size) : 0;
      const bool covers = held <= own.recorded.memory && own.recorded.memory - held <= 2 * (limit / kRecordedAhead);
      own.to_record.memory = covers ? own.recorded.memory : held;
      stale |= own.to_record != own.recorded;
    }
  return stale;
}

Scheduler::MemoryAnswer Scheduler::hold_memory(Client& client, std::size_t index, std::uint64_t bytes,
                                               std::uint64_t now_ns) {
  MemoryAnswer answer;
  Client::Slot& own = client.slots()[index];
  if (own.device < 0) return answer;
  const std::uint64_t held = client.memory(index, devices_[static_cast<std::size_t>(own.device)].memory_bytes);
  MemoryAnswer refused{.granted = false};
  const std::optional<std::uint64_t> left = memory_left(client, own.device, false, &refused, bytes);
  if (bytes > held) let_wait(client, own.device, bytes, answer);
  if (!left) return answer;
  answer.total = own.terms.memory_max;
  const bool fits = bytes <= std::max({*left, own.promised, own.inherited_memory});
  if (fits) refused = {.granted = false};  // no limit refuses it, should it not be recorded
  answer.granted = fits && (bytes <= own.recorded.memory || record_memory(client, index, bytes, now_ns));
  if (answer.granted)
    own.promised = bytes, own.inherited_memory = 0;
  else
    refused.total = answer.total, answer = std::move(refused);
  const std::uint64_t holds = client.memory(index, devices_[static_cast<std::size_t>(own.device)].memory_bytes);
  answer.free = *left - std::min(*left, holds);
  return answer;
}

/// Whether all that the client has on the host may be on its devices again; then it is promised that.
bool Scheduler::has_room(Client& client, std::uint64_t now_ns) {
  std::vector<Client::Slot>& slots = client.slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].device < 0) continue;
    slots[i].promised = 0;
    const std::uint64_t bytes = client.swapped(i), others = held_by_others(client, slots[i].device, "/", false),
                        size = devices_[static_cast<std::size_t>(slots[i].device)].memory_bytes;
    if (bytes <= size - std::min(size, others) && hold_memory(client, i, bytes, now_ns).granted) continue;
    for (Client::Slot& slot : slots) slot.promised = 0;
    return false;
  }
  return true;
}

void Scheduler::swap_clients(std::uint64_t now_ns) {
  for (Client& client : clients_) {
    if (effective_[client.node].swapped) {
      client.want_swapped(true);
    } else if (client.wanted_swapped()) {
      client.waits_for_room = client.is_swapped() && !has_room(client, now_ns);
      if (!client.waits_for_room) client.want_swapped(false);
    }
  }
}

std::vector<std::pair<const Client*, Client::SwapNews>> Scheduler::swap_news(std::uint64_t now_ns) {
  std::vector<std::pair<const Client*, Client::SwapNews>> all;
  for (Client& client : clients_)
    if (auto news = client.swap_news(now_ns)) all.emplace_back(&client, std::move(*news));
  return all;
}

}  // namespace gpuctl::daemon
