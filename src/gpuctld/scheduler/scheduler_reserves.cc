// Reserves that are held for a while after the latest work of their slices, whatever becomes of the clients, and those
// that do not fit a device.
#include <algorithm>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "gpuctld/scheduler/scheduler.h"
#include "sched/effective/fit_reserves.h"
#include "sched/kept_memory.h"
#include "sched/place_notes.h"

namespace gpuctl::daemon {

/// True if a slice became active or inactive on a device. What a client does counts in its context alone. Beside
/// isolated slices nothing is kept for those that have left.
bool Scheduler::mark_active(std::uint64_t now_ns) {
  bool changed = false;
  reserve_ends_ns_ = UINT64_MAX;
  const auto mark = [&](std::vector<sched::NodeInput>& nodes, std::span<const sched::Work> work) {
    const sched::Activity activity = sched::mark_active(nodes, work, now_ns);
    changed |= activity.changed;
    reserve_ends_ns_ = std::min(reserve_ends_ns_, activity.next_ns);
  };
  for (auto& contexts : contexts_)
    for (auto& [mps, context] : contexts) context.work.clear();
  for (const Client& client : clients_)
    for (const Client::Slot& slot : client.slots()) {
      if (slot.device < 0) continue;
      const auto device = static_cast<std::size_t>(slot.device);
      if (!client.context) {
        std::uint64_t& last_ns = work_[device][client.node].last_ns;
        last_ns = std::max(last_ns, slot.work_ns);
      } else if (const auto own = contexts_[device].find(*client.context); own != contexts_[device].end()) {
        own->second.work.push_back({client.node, slot.work_ns});
      }
    }
  for (std::size_t device = 0; device < grants_.size(); ++device) {
    mark(nodes_on_[device], work_[device]);
    for (auto& [mps, context] : contexts_[device]) mark(context.nodes, context.work);
  }
  return changed;
}

/// How many reserves are held although no client is there. Whether one is decides what is in force for others.
std::size_t Scheduler::held_for_nobody() const {
  std::size_t held = 0;
  for (const auto& nodes : nodes_on_)
    for (std::size_t n = 0; n < nodes.size(); ++n) held += nodes[n].active && !inhabited_[n];
  return held;
}

std::vector<Scheduler::Worked> Scheduler::worked() const {
  std::vector<Worked> worked;
  for (std::size_t device = 0; device < work_.size(); ++device)
    for (std::size_t n = 0; const auto& [path, slice] : tree_.slices()) {
      std::chrono::nanoseconds hold{};  // the longest of those that its work prolongs
      sched::each_up_to_root(nodes_, n, [&](std::size_t up) { hold = std::max(hold, nodes_[up].hold); });
      if (const std::uint64_t last_ns = work_[device][n++].last_ns; last_ns != 0 && hold.count() > 0)
        worked.push_back({path, device, last_ns, hold});
    }
  return worked;
}

void Scheduler::saw_work(std::string_view slice, std::size_t device, std::uint64_t last_ns) {
  for (std::size_t n = 0; const auto& [path, settings] : tree_.slices()) {
    std::uint64_t& known_ns = work_[device][n++].last_ns;
    if (path == slice) known_ns = std::max(known_ns, last_ns);
  }
}

Scheduler::TreeOn::TreeOn(sched::SliceTree on)
    : tree(std::move(on)), effective(tree.effective()), nodes(tree.nodes(effective)) {
  std::vector<sched::NodeInput> fitted = nodes;
  sched::fit_reserves(fitted, tree.capacity());
  for (std::size_t n = 0; n < fitted.size(); ++n) effective[n].reserve = fitted[n].reserve;
}

std::vector<sched::Effective> Scheduler::effective_on_each(std::size_t slice) const {
  std::vector<sched::Effective> each;
  for (std::size_t device = 0; device < devices_.size(); ++device) {
    each.push_back(effective_on(device)[slice]);
    each.back().memory_min = kept_on_[device][slice];
  }
  return each;
}

std::vector<std::string> Scheduler::unfit_reserves(const sched::SliceTree& tree,
                                                   std::span<const std::string> slices) const {
  const auto is_meant = [&](const std::string& path) {
    return slices.empty() || std::ranges::find(slices, path) != slices.end();
  };
  std::vector<std::string> lines, reserved;
  for (std::size_t device = 0; device < devices_.size(); ++device) {
    const std::string name = "GPU " + std::to_string(devices_[device].index);
    const auto add = [&](const sched::SliceTree& there) {
      const sched::CapSM sms{sms_[device]};
      const std::vector<sched::NodeInput> nodes = there.nodes();
      for (auto& [path, line] : sched::unfit_reserves(there.slices(), nodes, sms, name))
        if (is_meant(path)) lines.push_back(std::move(line));
      if (std::string line = sched::all_reserved(there.slices(), nodes, slices, sms, name); !line.empty())
        reserved.push_back(std::move(line));
      for (auto& [path, line] :
           sched::unfit_memory(there.slices(), there.effective(), devices_[device].memory_bytes, name))
        if (is_meant(path)) lines.push_back(std::move(line));
    };
    if (sched::differ_by_gpu(tree.slices()))
      add(tree.on(size_of(devices_[device])));
    else
      add(tree);
  }
  std::ranges::move(reserved, std::back_inserter(lines));
  return lines;
}

}  // namespace gpuctl::daemon
