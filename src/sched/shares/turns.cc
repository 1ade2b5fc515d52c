#include "sched/shares/turns.h"

#include "sched/allocator.h"

namespace gpuctl::sched {

void charge(std::span<NodeInput> nodes, const Decision& decision, std::chrono::nanoseconds elapsed,
            std::chrono::nanoseconds turn) {
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const NodeDecision& node = decision.nodes[n];
    nodes[n].account.charge(node.due, node.given, elapsed, turn);
    nodes[n].own_account.charge(node.own_due, node.own_given, elapsed, turn);
  }
}

void end_turn(std::span<NodeInput> nodes) {
  for (NodeInput& node : nodes) node.account.end_turn(), node.own_account.end_turn();
}

}  // namespace gpuctl::sched
