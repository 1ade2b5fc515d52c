#include <gtest/gtest.h>

#include "gpuctld/grants/device_decision.h"
#include "gpuctld/testing/device_inputs.h"

namespace gpuctl::daemon {
namespace {

using enum ipc::Mode;
using Modes = std::vector<ipc::Mode>;

TEST(InCommon, WhatReservesLeaveIfNothingElseIsInForce) {
  Device device = beside_a_reserve(true);
  for (const std::uint32_t node : {2u, 3u}) {
    device.clients = {{.node = 1}, {.node = 2, .demand = 132}, {.node = node, .demand = 132}};
    EXPECT_EQ(device.modes(), (Modes{free, common, common}));
    EXPECT_EQ(device.grants(), (Counts{8, 62, 62})) << "kernels that can be evicted divide it as ever";
  }
  device.nodes[3].weight = 200;
  EXPECT_EQ(device.modes(), (Modes{workers, workers, workers})) << "weights";
  device.nodes[3].weight = 100;
  device.nodes[3].max = CapSM{50};
  EXPECT_EQ(device.modes(), (Modes{free, common, common})) << "a max";
  device.nodes[3].max = sched::kUnlimitedCapSM;
  device.nodes[3].reserve = CapSM{4};
  device.nodes[3].strict = true;
  EXPECT_EQ(device.modes(), (Modes{workers, workers, workers})) << "one has a reserve itself";
  device.clients.back().node = 2;
  EXPECT_EQ(device.modes(), (Modes{workers, workers, workers})) << "another reserve is in force for a third";
  device.nodes[3].reserve = {};
  EXPECT_EQ(device.modes(), (Modes{free, common, common}));
  device.options.reserve_by_parts = false;
  EXPECT_EQ(device.modes(), (Modes{free, workers, workers})) << "off";
  device.options.reserve_by_parts = true;
  device.capped = {false, true, false};
  EXPECT_EQ(device.modes(), (Modes{free, workers, workers})) << "MPS keeps one to some SMs or other";
}

TEST(InCommon, TheWholeDeviceWhileNoReserveIsKept) {
  Device device = beside_a_reserve(false);
  device.clients.push_back({.node = 2, .demand = 132});
  EXPECT_EQ(device.modes(), (Modes{free, lent, lent}));
  device.nodes[1].active = true;
  EXPECT_EQ(device.modes()[2], common);
  device.nodes[3].reserve = CapSM{4};
  EXPECT_EQ(device.modes()[2], common) << "one is lent to a slice without programs";
  device.nodes[1].active = false;
  EXPECT_EQ(device.modes()[2], lent) << "neither is";
}

Counts guaranteed(const Device& device) {
  Counts all;
  for (const Standing& standing : device.standings) all.push_back(standing.guaranteed);
  return all;
}

/// "ls" with nothing set, "batch" with a max of 99 and "inner", in it, with one of 50. A client in the first and two in
/// "batch".
Device beside_a_max() {
  Device device({slice(0, false), slice(0, false), slice(0, false)});
  device.nodes[2].max = CapSM{99};
  device.nodes[3].max = CapSM{50};
  device.nodes[3].parent = 2;
  device.options.reserve_by_parts = true;
  device.clients = {{.node = 1, .demand = 8}, {.node = 2, .demand = 132}, {.node = 2, .demand = 132}};
  return device;
}

TEST(InCommon, WhatAMaxLeaves) {
  Device device = beside_a_max();
  EXPECT_EQ(device.modes(), (Modes{free, common, common}));
  device.clients[2].node = 3;
  EXPECT_EQ(device.modes(), (Modes{free, common, common})) << "a slice within has a part within";
  EXPECT_EQ(guaranteed(device), (Counts{0, 99, 50}));
  device.nodes[1].reserve = CapSM{8};
  EXPECT_EQ(device.modes(), (Modes{free, workers, workers})) << "a reserve is lent";
  device.nodes[1].strict = true;
  EXPECT_EQ(device.modes(), (Modes{free, common, common}));
}

TEST(InCommon, ASuspendedSliceChangesNothingForOthers) {
  Device device = beside_a_max();
  device.nodes[3].max = CapSM{0};
  device.clients[2].node = 3;
  EXPECT_EQ(device.modes(), (Modes{free, common, workers}));
}

}  // namespace
}  // namespace gpuctl::daemon
