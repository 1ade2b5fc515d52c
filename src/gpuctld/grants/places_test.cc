// Where grants lie: one place for each slice, which follows from what was decided alone.
#include <gtest/gtest.h>

#include <numeric>

#include "base/random.h"
#include "gpuctld/testing/device_inputs.h"
#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon::places_test {
namespace {

Counts firsts(Device& device) {
  Counts counts;
  for (const ClientOutcome& outcome : device.decide().clients) counts.push_back(outcome.first);
  return counts;
}

TEST(Places, AReserveAtRestHasOneForAllClientsOfItsSlice) {
  Device device({slice(2, true), slice(2, true), slice(0, false)});
  device.clients = {{.node = 1}, {.node = 1}, {.node = 1}, {.node = 2}, {.node = 3, .demand = 132}};
  EXPECT_EQ(device.grants(), (Counts{2, 2, 2, 2, 128}));
  EXPECT_EQ(firsts(device), (Counts{0, 0, 0, 2, 4}));
  device.clients[1].demand = 1;
  EXPECT_EQ(device.grants(), (Counts{1, 2, 1, 2, 128}));
  EXPECT_EQ(firsts(device), (Counts{0, 0, 1, 2, 4})) << "what is at rest lies behind what one has by itself";
}

TEST(Places, AReserveWithoutClientsKeepsItsOwn) {
  Device device({slice(4, true), slice(4, true), slice(0, false), slice(0, false)});
  device.nodes[4].parent = 1;  // the first reserve's only clients are in a slice below
  device.clients = {{.node = 2}, {.node = 3, .demand = 132}};
  EXPECT_EQ(firsts(device), (Counts{4, 8}));
  device.clients.push_back({.node = 4});
  EXPECT_EQ(firsts(device), (Counts{4, 8, 0})) << "who comes moves nobody";
}

TEST(Places, SlicesWithAReserveComeFirst) {
  Device device({slice(0, false), slice(8, true), slice(0, false)});
  device.nodes[3].parent = 2;
  device.clients = {{.node = 1, .demand = 132}, {.node = 3, .demand = 4}};
  device.options.always_preemptible = true;
  EXPECT_EQ(device.grants(), (Counts{124, 8}));
  EXPECT_EQ(firsts(device), (Counts{8, 0})) << "a child of a slice with a reserve has its place there";
}

/// Whatever trees and demands: what clients have by themselves lies apart, and in their slice's place.
TEST(Places, LieApartAndMoveOnlyWithGrants) {
  Random random(7);
  const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random.below(n)); };
  int crowded = 0, stayed = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<sched::NodeInput> slices;
    std::uint32_t unreserved = 132;
    for (std::uint32_t more = 1 + below(6); more > 0; --more) {
      const std::uint32_t reserve = below(2) * below(unreserved / 2 + 1);
      unreserved -= reserve;
      slices.push_back(slice(reserve, below(2) != 0, below(3) ? 1000 : reserve + below(100), 1 + below(300)));
    }
    Device device(slices);
    for (std::size_t n = 2; n < device.nodes.size(); ++n)
      if (below(3) == 0 && device.nodes[n].reserve == CapSM{})
        device.nodes[n].parent = static_cast<std::int32_t>(1 + below(n - 1));
    device.options.always_preemptible = true;
    for (std::uint32_t more = 1 + below(round % 2 == 0 ? 5 : 200); more > 0; --more)
      device.clients.push_back({.node = below(device.nodes.size())});
    Counts grants, places;
    for (int look = 0; look < 4; ++look) {
      for (ClientState& client : device.clients)
        if (look == 0 || below(4) == 0) client.demand = below(2) * (1 + below(132));
      const Counts before = std::exchange(grants, device.grants()), was = std::exchange(places, firsts(device));
      if (before == grants) {
        EXPECT_EQ(was, places) << round;
        ++stayed;
      }
      std::vector<int> users(132, 0);
      for (std::size_t i = 0; i < device.clients.size(); ++i) {
        const std::uint32_t own = device.decision.division.clients[i].own.count;
        ASSERT_LE(places[i] + grants[i], 132u) << round;
        for (std::uint32_t sm = places[i]; sm < places[i] + own; ++sm) ASSERT_EQ(++users[sm], 1) << round;
      }
      crowded += std::accumulate(users.begin(), users.end(), 0) == 132;
    }
  }
  EXPECT_GT(crowded, 1000);
  EXPECT_GT(stayed, 300);
}

TEST(Places, WorkOfASliceWithAReserveMovesNobody) {
  sched::SliceTree tree(CapSM{16}, 0);
  ASSERT_TRUE(tree.create("ls", {.reserve = 4, .reserve_mode = "strict"}, kRoot));
  ASSERT_TRUE(tree.create("batch", {}, kRoot));
  ASSERT_TRUE(tree.create("batch/a", {}, kRoot));
  ASSERT_TRUE(tree.create("batch/b", {.weight = 200}, kRoot));
  Scheduler scheduler({gpu(16)}, tree);
  FakeProgram ls(scheduler, "ls"), a(scheduler, "batch/a"), b(scheduler, "batch/b");
  const auto place = [](const FakeProgram& program) {
    return std::pair(program.stub->grant[0].first, program.granted());
  };
  std::uint64_t now = 1;
  const auto settle = [&] {
    for (int i = 0; i < 4; ++i) {
      for (FakeProgram* program : {&ls, &a, &b}) program->apply();
      scheduler.update(++now);
      EXPECT_EQ(place(a), std::pair(4u, 4u));
      EXPECT_EQ(place(b), std::pair(8u, 8u));
    }
  };
  a.demand(16), b.demand(16);
  for (int i = 0; i < 3; ++i) {
    for (FakeProgram* program : {&ls, &a, &b}) program->apply();
    scheduler.update(++now);
  }
  for (const std::uint32_t work : {4u, 0u, 4u, 0u}) {
    ls.launch();
    ls.demand(work);
    settle();
  }
}

}  // namespace
}  // namespace gpuctl::daemon::places_test
