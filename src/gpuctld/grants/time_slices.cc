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

}  // namespace

std::vector<std::uint32_t> time_slices(std::span<const sched::NodeInput> nodes, std::span<const TimeShare> programs,
                                       std::uint32_t second_us) {
  std::vector<std::uint32_t> own(nodes.size(), 0);
  for (const TimeShare& program : programs) ++own[program.node];
  sched::WeightParts parts;
  const std::span<const double> share = parts.compute(nodes, own);
  std::vector<bool> second(programs.size(), false);
  std::size_t seconds = 0;
  bool often = false;       // one that comes first launches often
  double most[2] = {0, 0};  // greatest share of the programs that come first, and of those that come second
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const TimeShare& own = programs[i];
    second[i] = std::any_of(programs.begin(), programs.end(), [&](const TimeShare& other) {
      if (other.priority != own.priority) return other.priority > own.priority;
      return has_reserve_beside(nodes, other.node, own.node) && !has_reserve_beside(nodes, own.node, other.node);
    });
    seconds += second[i];
    often |= own.often && !second[i];
    most[second[i]] = std::max(most[second[i]], share[own.node]);
  }
  std::uint32_t longest_second = second_us;
  if (longest_second == 0) longest_second = often ? kSparingUs : seconds == 1 ? kGivingWayUs : kSecondUs;
  std::vector<std::uint32_t> slices;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const double part = share[programs[i].node] / most[second[i]];
    const auto shared = [part](std::uint32_t us) {
      return std::max(static_cast<std::uint32_t>(us * part), kLeastSharedUs);
    };
    if (second[i])
      slices.push_back(seconds == 1 ? longest_second : shared(longest_second));
    else
      slices.push_back(part < 1 ? shared(kUsualTimeSliceUs) : ipc::kDriversTimeSlice);
  }
  return slices;
}

}  // namespace gpuctl::daemon
