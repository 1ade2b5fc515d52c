#include "gpuctld/grants/time_slices.h"

#include <algorithm>

#include "ipc/stub.h"
#include "sched/effective/weight_parts.h"

namespace gpuctl::daemon {

namespace {

/// Whether `node` has a part in a reserve that `other` has none in.
bool has_reserve_beside(std::span<const sched::NodeInput> nodes, std::size_t node, std::size_t other) {
  bool found = false;
  sched::each_up_to_root(nodes, node, [&](std::size_t n) {
    if (n == 0 || nodes[n].reserve == sched::CapSM{}) return;
    bool both = false;
    sched::each_up_to_root(nodes, other, [&](std::size_t above) { both |= above == n; });
    found |= !both;
  });
  return found;
}

/// What takes turns with others: a program, or an MPS server with all its clients.
struct Turn {
  std::vector<std::uint32_t> nodes;  ///< of its programs
  std::int32_t priority = 0;         ///< the greatest of them
  double share = 0;
  std::int32_t server = kOwnContext;
  bool often = false, second = false;
  std::optional<std::chrono::microseconds> longest;  ///< the least of theirs
};

/// Whether a program of `a` has a part in a reserve that none of `b` has a part in.
bool has_reserve_beside(std::span<const sched::NodeInput> nodes, const Turn& a, const Turn& b) {
  return std::ranges::any_of(a.nodes, [&](std::uint32_t node) {
    return std::ranges::all_of(b.nodes, [&](std::uint32_t other) { return has_reserve_beside(nodes, node, other); });
  });
}

/// `place`: for each program the index of its turn.
std::vector<Turn> turns_of(std::span<const sched::NodeInput> nodes, std::span<const TimeShare> programs,
                           std::vector<std::size_t>& place) {
  std::vector<std::uint32_t> own(nodes.size(), 0);
  for (const TimeShare& program : programs) ++own[program.node];
  sched::WeightParts parts;
  const std::span<const double> share = parts.compute(nodes, own);
  std::vector<Turn> turns;
  for (const TimeShare& program : programs) {
    const auto server = std::ranges::find(turns, program.server, &Turn::server);
    const bool joins = program.server != kOwnContext && server != turns.end();
    place.push_back(static_cast<std::size_t>(joins ? server - turns.begin() : std::ssize(turns)));
    if (!joins) turns.push_back({.priority = program.priority, .server = program.server});
    Turn& turn = turns[place.back()];
    turn.nodes.push_back(program.node);
    turn.priority = std::max(turn.priority, program.priority);
    turn.share += share[program.node];
    turn.often |= program.often;
    if (program.longest) turn.longest = std::min(*program.longest, turn.longest.value_or(*program.longest));
  }
  return turns;
}

}  // namespace

std::vector<std::uint32_t> time_slices(std::span<const sched::NodeInput> nodes, std::span<const TimeShare> programs,
                                       std::uint32_t second_us) {
  std::vector<std::size_t> place;
  std::vector<Turn> turns = turns_of(nodes, programs, place);
  std::size_t seconds = 0;
  bool often = false, server = false;  // one that comes first launches often; the server comes second
  double most[2] = {0, 0};             // greatest share of those that come first, and of those that come second
  for (Turn& own : turns) {
    own.second = std::ranges::any_of(turns, [&](const Turn& other) {
      if (other.priority != own.priority) return other.priority > own.priority;
      return has_reserve_beside(nodes, other, own) && !has_reserve_beside(nodes, own, other);
    });
    seconds += own.second;
    often |= own.often && !own.second;
    server |= own.server != kOwnContext && own.second;
    most[own.second] = std::max(most[own.second], own.share);
  }
  std::uint32_t longest_second = second_us;
  if (longest_second == 0)
    longest_second = often ? kSparingUs : seconds > 1 ? kSecondUs : server ? kServerSecondUs : kGivingWayUs;
  std::vector<std::uint32_t> slices;
  for (const std::size_t index : place) {
    const Turn& turn = turns[index];
    const double part = turn.share / most[turn.second];
    const auto shared = [part](std::uint32_t us) {
      const auto lost = std::min(us, kLostOfTurnUs);
      return lost + static_cast<std::uint32_t>((us - lost) * part);
    };
    if (turn.second)
      slices.push_back(seconds == 1 ? longest_second : shared(longest_second));
    else
      slices.push_back(part < 1 ? shared(kUsualTimeSliceUs) : ipc::kDriversTimeSlice);
    if (turn.longest) slices.back() = std::min(slices.back(), static_cast<std::uint32_t>(turn.longest->count()));
  }
  return slices;
}

}  // namespace gpuctl::daemon
