#include "sched/residency/beside.h"

#include <gtest/gtest.h>

#include <array>

#include "base/random.h"

namespace gpuctl::sched::beside_test {
namespace {

using Counts = std::vector<std::uint32_t>;

constexpr CapSM kSms{8};
/// Of these an SM of compute capability 9.0 holds 4 by shared memory, 8 by warps, 1 by registers.
constexpr BlockShape kMemory{32, 16, 48 * 1024}, kThreads{256, 32, 0}, kRegisters{1024, 64, 0};

NodeInput slice(std::uint32_t max = kUnlimitedCapSM.count, std::int32_t priority = 0, std::uint32_t weight = 100) {
  return {.parent = 0, .max = CapSM{max}, .weight = weight, .priority = priority};
}

/// Clients of slices below the root, numbered from 1.
struct Device {
  explicit Device(std::vector<NodeInput> slices) : nodes(std::move(slices)) {
    nodes.insert(nodes.begin(), NodeInput{});
    at_rest.resize(nodes.size());
  }
  void add(std::uint32_t node, std::uint32_t own, const BlockShape* block, std::uint32_t most = kSms.count,
           std::uint32_t kept = 0) {
    clients.push_back({node, CapSM{own}, CapSM{most}, true, {.kept = CapSM{kept}}});
    if (block != nullptr) clients.back().footprint.blocks = {block, 1};
  }
  Counts grown() {
    std::vector<Neighbour> now = clients;
    GrowBeside().run(nodes, at_rest, sm, kSms, now);
    Counts counts;
    for (const Neighbour& client : now) counts.push_back(client.own.count);
    return counts;
  }

  SmLimits sm = sm_limits("9.0").value();
  std::vector<NodeInput> nodes;
  std::vector<CapSM> at_rest;
  std::vector<Neighbour> clients;
};

TEST(GrowBeside, KernelsThatNeedDifferentThingsHaveMoreThanTheDevice) {
  Device device({slice(), slice()});
  device.add(1, 4, &kMemory);
  device.add(2, 4, &kThreads);
  EXPECT_EQ(device.grown(), (Counts{8, 7}));  // four warps, and seven times eight
}

TEST(GrowBeside, KernelsThatNeedTheSameHaveTheDevice) {
  Device device({slice(), slice()});
  device.add(1, 4, &kThreads);
  device.add(2, 4, &kThreads);
  EXPECT_EQ(device.grown(), (Counts{4, 4}));
  // Half of the SMs have a block of each, and together these do not fit on one SM.
  device.clients.clear();
  device.add(1, 4, &kRegisters);
  device.add(2, 4, &kMemory);
  EXPECT_EQ(device.grown(), (Counts{4, 4}));
}

TEST(GrowBeside, AKernelThatNobodyKnowsCountsAsEverything) {
  Device device({slice(), slice()});
  device.add(1, 4, nullptr);
  device.add(2, 4, &kThreads);
  EXPECT_EQ(device.grown(), (Counts{4, 4}));
  // It can have what a known one leaves, in every resource.
  device.clients.clear();
  static constexpr BlockShape kSmall{32, 16, 1024};  // 32 by the number of blocks
  device.add(1, 4, nullptr);
  device.add(2, 4, &kSmall, 1);
  device.clients[1].own = CapSM{1};
  EXPECT_EQ(device.grown(), (Counts{7, 1}));
}

TEST(GrowBeside, NobodyGetsMoreThanItCanUse) {
  Device device({slice(), slice()});
  device.add(1, 4, &kMemory, 6);
  device.add(2, 4, &kThreads, 4);
  EXPECT_EQ(device.grown(), (Counts{6, 4}));
}

TEST(GrowBeside, AMaxHoldsForAllClientsOfASliceTogether) {
  Device device({slice(6), slice()});
  device.nodes.push_back({.parent = 1, .priority = 0});  // below the slice with the max
  device.at_rest.resize(device.nodes.size());
  device.add(1, 2, &kMemory);
  device.add(3, 2, &kMemory);
  device.add(2, 4, &kThreads);
  EXPECT_EQ(device.grown(), (Counts{4, 2, 7}));
  device.nodes[1].max = CapSM{4};
  EXPECT_EQ(device.grown(), (Counts{2, 2, 7}));
}

TEST(GrowBeside, WhatIsKeptFreeStaysFree) {
  Device device({slice(), slice(), slice()});
  device.at_rest[3] = CapSM{2};
  device.add(1, 3, &kMemory);
  device.add(2, 3, &kThreads);
  EXPECT_EQ(device.grown(), (Counts{6, 5}));  // a quarter of everything is left
  // The reserve of a client at work is kept from others too, whatever its kernel takes now.
  device.at_rest[3] = {};
  device.clients.clear();
  device.add(1, 4, &kMemory, 4, 4);
  device.add(2, 4, &kThreads);
  EXPECT_EQ(device.grown(), (Counts{4, 4}));
}

/// An SM holds one of these, and beside it one of kMemory.
constexpr BlockShape kMost{32, 16, 150 * 1024};

TEST(GrowBeside, WhoFindsNoRoomOnAnySmGetsSome) {
  Device device({slice(), slice(), slice()});
  device.add(1, 4, &kMemory);  // two on each SM
  device.add(2, 4, &kMost);
  EXPECT_EQ(device.grown(), (Counts{2, 8}));
  device.nodes[1].priority = 1;
  EXPECT_EQ(device.grown(), (Counts{4, 4})) << "who has less priority takes nothing away";
  device.nodes[1].priority = 0;
  device.clients[0].footprint.kept = CapSM{4};
  EXPECT_EQ(device.grown(), (Counts{4, 4})) << "a reserve stays";
  device.clients[0].footprint.kept = {};
  device.clients[0].gives = false;
  EXPECT_EQ(device.grown(), (Counts{4, 4}));
  // Two who both have some SMs without the other need nothing.
  device.clients.clear();
  device.add(1, 4, &kMost);
  device.add(2, 4, &kMost);
  EXPECT_EQ(device.grown(), (Counts{4, 4}));
  // Nobody gives where that does not help.
  device.clients.clear();
  device.add(1, 3, &kThreads);  // three on each SM
  device.add(2, 3, &kRegisters);
  device.at_rest[3] = CapSM{2};
  EXPECT_EQ(device.grown(), (Counts{3, 3}));
}

TEST(GrowBeside, TheGreatestPriorityGrowsFirstThenByWeight) {
  Device device({slice(), slice(), slice()});
  device.add(1, 2, &kMemory);
  device.add(2, 2, &kThreads);
  device.add(3, 2, &kThreads);
  const Counts equal = device.grown();
  EXPECT_EQ(equal, (Counts{8, 4, 3}));
  device.nodes[3].priority = 1;
  EXPECT_EQ(device.grown(), (Counts{8, 2, 5}));
  device.nodes[3].priority = 0;
  device.nodes[3].weight = 300;
  EXPECT_EQ(device.grown(), (Counts{8, 2, 5}));
}

TEST(GrowBeside, EverythingFitsOrAddsUp) {
  Random random(1);
  const auto some = [&random](std::uint64_t most) { return static_cast<std::uint32_t>(random.below(most)); };
  for (int round = 0; round < 2000; ++round) {
    Device device({slice(1 + some(12)), slice(), slice(kUnlimitedCapSM.count, 1)});
    std::array<BlockShape, 6> blocks;
    std::uint32_t left = kSms.count;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      blocks[i] = {1 + some(1024), 1 + some(64), some(64 * 1024)};
      const std::uint32_t node = 1 + some(3), own = some(std::min(left, device.nodes[node].max.count) + 1);
      if (node == 1) device.nodes[1].max.count = std::max(device.nodes[1].max.count, own * 6);
      device.add(node, own, some(4) == 0 ? nullptr : &blocks[i], own + some(kSms.count - own + 1));
      left -= own;
    }
    const Counts after = device.grown();
    SmUse use;
    std::uint32_t sum = 0, of_first = 0;
    for (std::size_t i = 0; i < after.size(); ++i) {
      const Neighbour& client = device.clients[i];
      EXPECT_TRUE(after[i] > 0 || client.own == CapSM{}) << "round " << round;
      EXPECT_LE(after[i], std::max(client.own, client.most).count);
      use += use_of(device.sm, client.footprint, CapSM{after[i]}, kSms);
      sum += after[i];
      if (client.node == 1) of_first += after[i];
    }
    EXPECT_TRUE(sum <= kSms.count || fits(device.sm, use)) << "round " << round;
    EXPECT_TRUE(device.nodes[1].max >= kSms || of_first <= device.nodes[1].max.count) << "round " << round;
  }
}

}  // namespace
}  // namespace gpuctl::sched::beside_test
