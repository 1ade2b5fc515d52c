#include "sched/effective/weight_parts.h"

#include "sched/slice.h"

namespace gpuctl::sched {

std::span<const double> WeightParts::compute(std::span<const NodeInput> nodes, std::span<const std::uint32_t> own) {
  inhabited_.assign(nodes.size(), false);
  weights_.assign(nodes.size(), 0);
  for (std::size_t n = nodes.size(); n-- > 0;) {  // children before their parents
    inhabited_[n] = inhabited_[n] || own[n] > 0;
    if (own[n] > 0) weights_[n] += kWeightDefault;
    if (nodes[n].parent < 0 || !inhabited_[n]) continue;
    const auto parent = static_cast<std::size_t>(nodes[n].parent);
    inhabited_[parent] = true;
    weights_[parent] += nodes[n].weight;
  }
  whole_.assign(nodes.size(), 1);
  each_.assign(nodes.size(), 0);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (!inhabited_[n]) continue;
    if (nodes[n].parent >= 0) {
      const auto parent = static_cast<std::size_t>(nodes[n].parent);
      whole_[n] = whole_[parent] * nodes[n].weight / weights_[parent];
    }
    if (own[n] > 0) each_[n] = whole_[n] * kWeightDefault / weights_[n] / own[n];
  }
  return each_;
}

}  // namespace gpuctl::sched
