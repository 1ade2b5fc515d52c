#include "sched/activity.h"

#include <algorithm>

namespace gpuctl::sched {

Activity mark_active(std::span<NodeInput> nodes, std::span<const Work> work, std::uint64_t now_ns) {
  for (NodeInput& node : nodes) node.active_until_ns = 0;
  for (const Work& client : work) {
    if (client.last_ns == 0) continue;
    each_up_to_root(nodes, client.node, [&](std::size_t n) {
      NodeInput& node = nodes[n];
      const auto hold = static_cast<std::uint64_t>(node.hold.count());
      if (hold > 0) node.active_until_ns = std::max(node.active_until_ns, client.last_ns + hold);
    });
  }
  Activity activity;
  for (NodeInput& node : nodes) {
    if (node.kept_with_parent) node.active_until_ns = nodes[static_cast<std::size_t>(node.parent)].active_until_ns;
    const bool active = now_ns < node.active_until_ns;
    activity.changed |= active != node.active;
    node.active = active;
    if (active) activity.next_ns = std::min(activity.next_ns, node.active_until_ns);
  }
  return activity;
}

}  // namespace gpuctl::sched
