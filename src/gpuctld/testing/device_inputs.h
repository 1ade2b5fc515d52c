// A device with slices and clients, for tests of what is decided for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "gpuctld/grants/device_decision.h"
#include "sched/policy.h"

namespace gpuctl::daemon {

using sched::CapSM;
using Counts = std::vector<std::uint32_t>;

inline sched::NodeInput slice(std::uint32_t reserve, bool strict, std::uint32_t max = sched::kUnlimitedCapSM.count,
                              std::uint32_t weight = 100) {
  return {.parent = 0,
          .reserve = CapSM{reserve},
          .strict = strict,
          .hold = std::chrono::milliseconds(strict ? 0 : 100),
          .max = CapSM{max},
          .weight = weight,
          .policy = &sched::policies().front()};
}

/// A device of 132 SMs with slices directly below the root, numbered from 1.
struct Device {
  explicit Device(std::vector<sched::NodeInput> slices) : nodes(std::move(slices)) {
    nodes.insert(nodes.begin(), slice(132, true));
    nodes.front().parent = -1;
  }

  const DeviceDecision& decide() {
    std::vector<Resident> residents;
    capped.resize(clients.size());
    for (std::size_t i = 0; i < clients.size(); ++i)
      residents.push_back({clients[i].node, clients[i].under_policy, capped[i]});
    where.options = &options;
    standings = standings_of(nodes, residents, where);
    daemon::decide({nodes, clients, standings, where}, allocator, decision);
    return decision;
  }
  Counts grants() {
    Counts counts;
    for (const ClientOutcome& outcome : decide().clients) counts.push_back(outcome.capsm);
    return counts;
  }

  std::vector<bool> settled() {
    decide();
    std::vector<bool> flags;
    for (const Settled& one : settled_grants({nodes, clients, standings, where}, allocator)) flags.push_back(one.grant);
    return flags;
  }
  /// By client, of a decision that knows what is settled.
  std::vector<ipc::Mode> modes() {
    decide();
    const std::vector<Settled> settled = settled_grants({nodes, clients, standings, where}, allocator);
    for (std::size_t i = 0; i < clients.size(); ++i) clients[i].settled = settled[i];
    std::vector<ipc::Mode> modes;
    for (const ClientOutcome& outcome : decide().clients) modes.push_back(outcome.mode);
    for (ClientState& client : clients) client.settled = {};
    return modes;
  }

  std::vector<sched::NodeInput> nodes;
  std::vector<ClientState> clients;
  std::vector<bool> capped;  ///< Resident::capped, by client
  std::vector<Standing> standings;
  DaemonOptions options{.reserve_by_parts = false};
  DeviceConditions where{.capacity = CapSM{132}};
  sched::Allocator allocator;
  DeviceDecision decision;
};

/// "ls" with a reserve of 8, "batch" and "other" with nothing set, and a client in the first two.
inline Device beside_a_reserve(bool strict) {
  Device device({slice(8, strict), slice(0, false), slice(0, false)});
  device.options.reserve_by_parts = true;
  device.clients = {{.node = 1}, {.node = 2, .demand = 132}};
  return device;
}

}  // namespace gpuctl::daemon
