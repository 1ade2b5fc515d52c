#include <gtest/gtest.h>

#include "gpuctld/grants/device_decision.h"
#include "gpuctld/testing/device_inputs.h"

namespace gpuctl::daemon {
namespace {

std::vector<Common> common(Device& device) {
  std::vector<Common> all;
  for (const ClientOutcome& outcome : device.decide().clients) all.push_back(outcome.common);
  return all;
}

TEST(InCommon, WhatReservesLeaveIfNothingElseIsInForce) {
  using enum Common;
  Device device = beside_a_reserve(true);
  for (const std::uint32_t node : {2u, 3u}) {
    device.clients = {{.node = 1}, {.node = 2, .demand = 132}, {.node = node, .demand = 132}};
    EXPECT_EQ(common(device), (std::vector{nothing, part, part}));
    EXPECT_EQ(device.by_parts(), (Flags{false, true, true}));
    EXPECT_EQ(device.cannot_shrink(), (Flags{true, true, true}));
    EXPECT_EQ(device.grants(), (Counts{8, 62, 62})) << "kernels that can be evicted divide it as ever";
  }
  device.nodes[3].weight = 200;
  EXPECT_EQ(common(device), (std::vector{nothing, nothing, nothing})) << "weights";
  device.nodes[3].weight = 100;
  device.nodes[3].max = CapSM{50};
  EXPECT_EQ(common(device), (std::vector{nothing, part, part})) << "a max";
  EXPECT_EQ(device.by_parts(), (Flags{false, true, true}));
  device.nodes[3].max = sched::kUnlimitedCapSM;
  device.nodes[3].reserve = CapSM{4};
  device.nodes[3].strict = true;
  EXPECT_EQ(common(device), (std::vector{nothing, nothing, nothing})) << "one has a reserve itself";
  device.clients.back().node = 2;
  EXPECT_EQ(common(device), (std::vector{nothing, nothing, nothing})) << "another reserve is in force for a third";
  device.nodes[3].reserve = {};
  EXPECT_EQ(common(device), (std::vector{nothing, part, part}));
  device.where.by_parts = false;
  EXPECT_EQ(common(device), (std::vector{nothing, nothing, nothing})) << "off";
  device.where.by_parts = true;
  device.capped = {false, true, false};
  EXPECT_EQ(common(device), (std::vector{nothing, nothing, nothing})) << "MPS keeps one to some SMs or other";
}

TEST(InCommon, TheWholeDeviceWhileNoReserveIsKept) {
  Device device = beside_a_reserve(false);
  device.clients.push_back({.node = 2, .demand = 132});
  EXPECT_EQ(device.decide().clients[2].common, Common::whole);
  EXPECT_EQ(device.by_parts(), (Flags{false, false, false})) << "those that can be evicted must be";
  EXPECT_FALSE(device.cannot_shrink()[2]);
  device.nodes[1].active = true;
  EXPECT_EQ(device.decide().clients[2].common, Common::part);
  device.nodes[3].reserve = CapSM{4};
  EXPECT_EQ(device.decide().clients[2].common, Common::part) << "one is lent to a slice without programs";
  device.nodes[1].active = false;
  EXPECT_EQ(device.decide().clients[2].common, Common::whole) << "neither is";
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
  device.where.by_parts = true;
  device.clients = {{.node = 1, .demand = 8}, {.node = 2, .demand = 132}, {.node = 2, .demand = 132}};
  return device;
}

TEST(InCommon, WhatAMaxLeaves) {
  using enum Common;
  Device device = beside_a_max();
  EXPECT_EQ(common(device), (std::vector{nothing, part, part}));
  EXPECT_EQ(device.by_parts(), (Flags{false, true, true}));
  EXPECT_EQ(device.cannot_shrink(), (Flags{true, true, true}));
  device.clients[2].node = 3;
  EXPECT_EQ(common(device), (std::vector{nothing, part, part})) << "a slice within has a part within";
  EXPECT_EQ(guaranteed(device), (Counts{0, 99, 50}));
  device.nodes[1].reserve = CapSM{8};
  EXPECT_EQ(common(device), (std::vector{nothing, nothing, nothing})) << "a reserve is lent";
  device.nodes[1].strict = true;
  EXPECT_EQ(common(device), (std::vector{nothing, part, part}));
}

TEST(InCommon, ASuspendedSliceChangesNothingForOthers) {
  using enum Common;
  Device device = beside_a_max();
  device.nodes[3].max = CapSM{0};
  device.clients[2].node = 3;
  EXPECT_EQ(common(device), (std::vector{nothing, part, nothing}));
  EXPECT_EQ(device.by_parts(), (Flags{false, true, false}));
}

}  // namespace
}  // namespace gpuctl::daemon
