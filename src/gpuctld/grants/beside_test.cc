// What clients have beside each other where kernels share each SM.
#include <gtest/gtest.h>

#include <numeric>

#include "gpuctld/testing/device_inputs.h"

namespace gpuctl::daemon {
namespace {

/// A device where kernels share each SM. An SM holds four workers of the first kernel and eight of the second.
class Beside : public testing::Test {
 protected:
  static constexpr sched::BlockShape kMemory{32, 16, 48 * 1024}, kThreads{256, 32, 0};
  Beside() {
    device_.where.sm = sched::sm_limits("9.0");
    device_.options.always_preemptible = true;
    device_.clients = {{.node = 1, .demand = 132, .footprint = {.blocks = {&kMemory, 1}}},
                       {.node = 2, .demand = 132, .footprint = {.blocks = {&kThreads, 1}}}};
  }

  Device device_{{slice(0, false), slice(0, false)}};
};

TEST_F(Beside, GrantsAddUpToMoreThanTheDeviceIfKernelsFitBesideEachOther) {
  EXPECT_EQ(device_.grants(), (Counts{132, 115}));  // all four, and seven of eight on each SM
  EXPECT_EQ((device_.decision.division.nodes[2].given + device_.decision.division.nodes[2].headroom).count, 115u);
  device_.clients[1].demand = 40;
  EXPECT_EQ(device_.grants(), (Counts{132, 40}));
  device_.clients[1] = device_.clients[0];
  device_.clients[1].node = 2;
  EXPECT_EQ(device_.grants(), (Counts{66, 66}));
  device_.where.sm.reset();
  device_.clients[1].footprint.blocks = {&kThreads, 1};
  EXPECT_EQ(device_.grants(), (Counts{66, 66}));
}

TEST_F(Beside, AmongManyClientsGrantsAddUpToTheDevice) {
  const auto sum = [&] {
    const Counts grants = device_.grants();
    return std::accumulate(grants.begin(), grants.end(), 0u);
  };
  while (device_.clients.size() < kMostBeside) device_.clients.push_back(device_.clients[device_.clients.size() % 2]);
  EXPECT_GT(sum(), 132u);
  device_.clients.push_back(device_.clients[0]);
  EXPECT_EQ(sum(), 132u);
}

TEST_F(Beside, AMaxHolds) {
  device_.nodes[1].max = CapSM{80};
  EXPECT_EQ(device_.grants(), (Counts{80, 115}));
}

TEST_F(Beside, WhatAPolicyForJobsAdmitsHolds) {
  device_.clients[0].admitted = 99;
  device_.clients[1].admitted = 33;
  EXPECT_EQ(device_.grants(), (Counts{99, 33}));
}

TEST_F(Beside, AReserveThatIsKeptIsKeptFromOthersWhateverItsKernelsTake) {
  device_.nodes[1].reserve = CapSM{66};
  device_.nodes[1].strict = true;
  EXPECT_EQ(device_.grants(), (Counts{132, 66})) << "all of the other half of the threads";
  device_.clients[0].demand = 0;
  EXPECT_EQ(device_.grants(), (Counts{66, 66}));
  device_.nodes[1].strict = false;  // lent
  device_.clients[0].demand = 132;
  EXPECT_EQ(device_.grants(), (Counts{132, 115}));
}

TEST_F(Beside, AKernelThatNobodyKnowsCountsAsEverything) {
  device_.clients[0].footprint = {};
  EXPECT_EQ(device_.grants(), (Counts{66, 66}));
}

// One block of the second kernel takes two thirds of the shared memory. Beside two of the first there would be no room.
TEST_F(Beside, WhoFindsNoRoomGetsSome) {
  static constexpr sched::BlockShape kMost{32, 16, 150 * 1024};
  device_.clients[1].footprint.blocks = {&kMost, 1};
  EXPECT_EQ(device_.grants(), (Counts{33, 132}));
  device_.nodes[1].reserve = CapSM{66};
  device_.nodes[1].strict = true;
  EXPECT_EQ(device_.grants(), (Counts{99, 33})) << "two of them are the reserve, and stay";
}

}  // namespace
}  // namespace gpuctl::daemon
