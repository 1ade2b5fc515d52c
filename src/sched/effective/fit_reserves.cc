#include "sched/effective/fit_reserves.h"

#include <algorithm>

#include "base/plural.h"

namespace gpuctl::sched {

void fit_reserves(std::span<NodeInput> nodes, CapSM device) {
  std::vector<CapSM> left(nodes.size());  // of each node's reserve, for its children
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    NodeInput& node = nodes[n];
    if (n == 0) {
      node.reserve = device;
    } else {
      CapSM& above = left[static_cast<std::size_t>(node.parent)];
      node.reserve = std::min(node.reserve, above);
      above -= node.reserve;
    }
    left[n] = std::min(node.reserve, node.max);
  }
}

std::vector<std::pair<std::string, std::string>> unfit_reserves(const Slices& slices, std::span<const NodeInput> nodes,
                                                                CapSM device, const std::string& name) {
  std::vector<NodeInput> fitted(nodes.begin(), nodes.end());
  fit_reserves(fitted, device);
  std::vector<std::pair<std::string, std::string>> lines;
  for (std::size_t n = 0; const auto& [path, slice] : slices) {
    const bool has_any = n > 0 && nodes[n].reserve > CapSM{};  // not so below a policy for jobs
    const CapSM fits = fitted[n++].reserve;
    if (has_any && fits < slice.reserve)
      lines.emplace_back(path, "the reserve of slice " + path + ", " + plural(slice.reserve.count, "SM") +
                                   ", does not fit " + name + ", which has " + std::to_string(device.count) +
                                   ": it is " + std::to_string(fits.count) + " there");
  }
  return lines;
}

}  // namespace gpuctl::sched
