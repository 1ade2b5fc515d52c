#include "gpuctld/grants/parts.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace gpuctl::daemon {

namespace {

using sched::CapSM;

/// A part that others lie in directly.
struct Frame {
  std::size_t node = 0;
  std::vector<std::size_t> within;  ///< nodes that have less of it, in the order of the tree
};

/// Where they begin within a frame of `room` SMs.
std::vector<std::uint32_t> beside_each_other(std::span<const std::size_t> nodes, std::span<const CapSM> sizes,
                                             std::uint32_t room) {
  const auto add = [&](std::uint32_t sum, std::size_t node) { return sum + sizes[node].count; };
  const bool fit = std::accumulate(nodes.begin(), nodes.end(), 0u, add) <= room;
  std::vector<std::uint32_t> begins;
  std::uint32_t at = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::uint32_t size = sizes[nodes[i]].count, left = room - std::min(room, size);
    // Parts are made of pairs of SMs.
    const auto spread = static_cast<std::uint32_t>(i == 0 ? 0 : std::uint64_t{left} * i / (nodes.size() - 1));
    begins.push_back(fit ? at : spread - spread % 2);
    at += size;
  }
  return begins;
}

}  // namespace

std::vector<std::uint32_t> parts_of(std::span<const sched::NodeInput> nodes, std::span<const CapSM> sizes,
                                    CapSM capacity) {
  std::vector<std::size_t> frame_of(nodes.size(), 0);  // the frame that the node's clients have
  std::vector<Frame> frames(1);
  for (std::size_t n = 1; n < nodes.size(); ++n) {  // parents first
    const std::size_t above = frame_of[static_cast<std::size_t>(nodes[n].parent)];
    frame_of[n] = above;
    if (sizes[n] >= sizes[frames[above].node] || nodes[n].max == CapSM{}) continue;  // a suspended one has none
    frames[above].within.push_back(n);
    frame_of[n] = frames.size();
    frames.push_back({.node = n, .within = {}});
  }
  std::vector<std::uint32_t> firsts(nodes.size(), capacity.count - std::min(capacity, sizes[0]).count);
  for (const Frame& frame : frames) {  // each after the one that it lies in
    const std::vector<std::uint32_t> begins = beside_each_other(frame.within, sizes, sizes[frame.node].count);
    for (std::size_t i = 0; i < begins.size(); ++i) firsts[frame.within[i]] = firsts[frame.node] + begins[i];
  }
  for (std::size_t n = 1; n < nodes.size(); ++n) firsts[n] = firsts[frames[frame_of[n]].node];
  return firsts;
}

}  // namespace gpuctl::daemon
