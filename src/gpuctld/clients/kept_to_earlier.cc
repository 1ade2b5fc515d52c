#include "gpuctld/clients/kept_to_earlier.h"

#include <algorithm>
#include <iterator>

#include "base/plural.h"
#include "sched/effective/effective.h"
#include "sched/effective/kept_by_mps.h"

namespace gpuctl::daemon {

namespace {

/// Whether the max is greater now on a GPU.
bool is_raised(const std::vector<sched::GpuSize>& gpus, const sched::Slice& was, const sched::Slice& slice) {
  return std::ranges::any_of(
      gpus, [&](const sched::GpuSize& gpu) { return sched::on_gpu(slice, gpu).max > sched::on_gpu(was, gpu).max; });
}

}  // namespace

std::vector<std::string> kept_to_earlier_max(const sched::SliceTree& before, const sched::SliceTree& after,
                                             const std::list<Client>& clients) {
  std::vector<std::string> lines;
  std::vector<sched::Effective> effective;
  for (const auto& [path, slice] : after.slices()) {
    const sched::Slice* was = before.find(path);
    if (was == nullptr || *was == slice || !is_raised(after.gpus(), *was, slice)) continue;
    if (effective.empty()) effective = after.effective();
    const auto left_out = [&, &below = path](const Client& client) {  // clang 14 captures no structured binding itself
      if (client.stands_in || !sched::in_or_below(client.slice(), below)) return false;
      const auto own = std::distance(after.slices().begin(), after.slices().find(client.slice()));
      const sched::CapSM max = effective[static_cast<std::size_t>(own)].max;
      return std::ranges::any_of(client.slots(), [max](const Client::Slot& slot) {
        return slot.mps_sms > 0 && sched::kept_to_fewer(sched::CapSM{slot.mps_sms}, max);
      });
    };
    if (const auto count = std::ranges::count_if(clients, left_out); count > 0)
      lines.push_back("MPS keeps " + plural(count, "program") + " in " + path +
                      " to the earlier max until started again");
  }
  return lines;
}

}  // namespace gpuctl::daemon
