#include "gpuctld/grants/device_decision.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "sched/policy.h"

namespace gpuctl::daemon {
namespace {

using sched::CapSM;
using Counts = std::vector<std::uint32_t>;

sched::NodeInput slice(std::uint32_t reserve, bool strict, std::uint32_t max = sched::kUnlimitedCapSM.count,
                       std::uint32_t weight = 100) {
  return {.parent = 0,
          .reserve = CapSM{reserve},
          .strict = strict,
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
    for (const ClientState& client : clients) residents.push_back({client.node, client.under_policy});
    standings = standings_of(nodes, residents, where);
    daemon::decide({nodes, clients, standings, where, 0}, allocator, decision);
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
  std::vector<bool> by_parts() {
    decide();
    const std::vector<Settled> settled = settled_grants({nodes, clients, standings, where}, allocator);
    std::vector<bool> flags;
    for (std::size_t i = 0; i < clients.size(); ++i)
      flags.push_back(goes_by_parts(where, standings[i], settled[i], decision.clients[i]));
    return flags;
  }

  std::vector<sched::NodeInput> nodes;
  std::vector<ClientState> clients;
  std::vector<Standing> standings;
  DeviceConditions where{.capacity = CapSM{132}};
  sched::Allocator allocator;
  DeviceDecision decision;
};

TEST(DeviceDecision, TheSameInputsGiveTheSameDecision) {
  Device device({slice(8, true), slice(0, false, 100)});
  device.clients = {{.node = 1, .demand = 8}, {.node = 2, .demand = 132}};
  const Counts first = device.grants();
  EXPECT_EQ(first, (Counts{8, 100}));
  EXPECT_EQ(device.grants(), first);
  EXPECT_EQ(Device(device).grants(), first);
}

TEST(DeviceDecision, AReserveThatIsKeptIsTheSlicesOwn) {
  Device device({slice(8, true), slice(0, false)});
  device.clients = {{.node = 1}, {.node = 2, .demand = 132}};
  EXPECT_EQ(device.grants(), (Counts{8, 124}));
  EXPECT_EQ(device.decision.clients[0].reserve, 8u);
  EXPECT_EQ(device.decision.clients[1].reserve, 0u);
  EXPECT_EQ(device.standings[1].guaranteed, 124u);
  device.clients[0].under_policy = true;
  EXPECT_EQ(device.decide().clients[0].reserve, 0u) << "time is divided there, not SMs";
}

TEST(DeviceDecision, AReserveThatMayBeLentMakesItsClientsReportWork) {
  Device device({slice(8, false), slice(0, false)});
  device.clients = {{.node = 1}, {.node = 2, .demand = 132}};
  device.decide();
  EXPECT_TRUE(device.standings[0].reports_work);
  EXPECT_FALSE(device.standings[1].reports_work);
  EXPECT_EQ(device.standings[1].guaranteed, 0u) << "all SMs";
}

TEST(DeviceDecision, WhereTheDeviceIsTimeSlicedEachHasAllThatItsSliceMayHave) {
  Device device({slice(8, true), slice(0, false, 40)});
  device.where.time_sliced = true;
  device.clients = {{.node = 1, .demand = 132}, {.node = 2, .demand = 132}};
  EXPECT_EQ(device.grants(), (Counts{132, 40}));
  EXPECT_EQ(device.decision.clients[0].reserve, 132u);
  EXPECT_EQ(device.decision.clients[1].reserve, 0u);
}

TEST(DeviceDecision, OfAFreeClientsDemandOnlyItsReserveCounts) {
  Device device({slice(8, false), slice(0, false)});
  device.clients = {{.node = 1, .demand = 132}, {.node = 2, .demand = 132}};
  EXPECT_EQ(device.grants()[1], 124u);
  EXPECT_TRUE(device.decision.clients[0].free);
  EXPECT_FALSE(device.decision.clients[1].free);
  device.where.storms = true;
  device.decide();
  EXPECT_FALSE(device.decision.clients[0].free);
}

TEST(DeviceDecision, AFreeClientChangesNoGrantWhateverItDoes) {
  for (const std::uint32_t reserve : {0u, 8u}) {
    Device device({slice(reserve, true), slice(0, false, 99), slice(0, false)});
    device.nodes[3].parent = 1;
    device.clients = {{.node = 1}, {.node = 2}, {.node = 3}};
    for (const std::uint32_t demand : {132u, 1u, 0u}) {
      device.clients[1].demand = demand;
      for (const std::uint32_t of_free : {0u, 132u, 1u, 0u}) {
        device.clients[0].demand = device.clients[2].demand = of_free;
        EXPECT_EQ(device.grants()[1], 99u) << demand << " beside " << of_free << ", reserve " << reserve;
        for (std::size_t i = 0; i < 3; ++i) device.clients[i].latest = device.decision.clients[i].latest;
      }
    }
    EXPECT_TRUE(device.decision.clients[0].free);
  }
}

TEST(DeviceDecision, FreeClientsOfOneSliceCountItsReserveOnce) {
  Device device({slice(8, true), slice(0, false)});
  device.clients = {{.node = 1, .demand = 6}, {.node = 1, .demand = 132}, {.node = 2, .demand = 132}};
  EXPECT_EQ(device.grants()[2], 124u);
  EXPECT_FALSE(device.decision.starving);
  device.clients[1].demand = 132;
  device.clients.push_back({.node = 1, .demand = 132});
  EXPECT_EQ(device.grants()[2], 124u);
  EXPECT_FALSE(device.decision.starving) << "they may use the whole device";
  device.where.by_parts = true;
  EXPECT_EQ(device.by_parts(), (std::vector<bool>{false, false, true, false}));
}

TEST(DeviceDecision, FreeClientsBelowAReserveCountItOnceToo) {
  Device device({slice(8, true), slice(0, false), slice(0, false)});
  device.nodes[2].parent = 1;
  device.clients = {{.node = 1, .demand = 132}, {.node = 2, .demand = 132}, {.node = 3, .demand = 132}};
  EXPECT_EQ(device.grants()[2], 124u);
}

TEST(DeviceDecision, APolicyForJobsBoundsItsClients) {
  Device device({slice(0, false)});
  device.clients = {{.node = 1, .demand = 0, .admitted = 0, .under_policy = true},
                    {.node = 1, .demand = 132, .under_policy = true}};
  EXPECT_EQ(device.grants(), (Counts{0, 132}));
  EXPECT_FALSE(device.decision.starving) << "a client that is not admitted demands nothing";
}

TEST(DeviceDecision, OnlyOneClientOfAnUnlimitedSliceIsAlone) {
  Device device({slice(0, false), slice(0, false, 100)});
  device.clients = {{.node = 1}};
  EXPECT_TRUE(device.decide().clients[0].alone);
  device.clients = {{.node = 2}};
  EXPECT_FALSE(device.decide().clients[0].alone);
  device.clients = {{.node = 1}, {.node = 1}};
  EXPECT_FALSE(device.decide().clients[0].alone);
}

TEST(DeviceDecision, WhoHadDemandLastIsRemembered) {
  Device device({slice(0, false)});
  device.clients = {{.node = 1, .demand = 5}, {.node = 1, .latest = true}};
  device.decide();
  EXPECT_TRUE(device.decision.clients[0].latest);
  EXPECT_FALSE(device.decision.clients[1].latest);
  device.clients = {{.node = 1, .latest = true}, {.node = 1}};
  device.decide();
  EXPECT_TRUE(device.decision.clients[0].latest);
}

TEST(DeviceDecision, AClientWithDemandAndNoSmsStarves) {
  Device device({slice(0, false, 1)});
  device.clients = {{.node = 1, .demand = 1}, {.node = 1, .demand = 1}};
  EXPECT_TRUE(device.decide().starving);
}

using Flags = std::vector<bool>;

TEST(SettledGrants, WhereNobodyMayTakeAnythingAway) {
  Device device({slice(33, true), slice(0, false), slice(0, false, 99)});
  device.clients = {{.node = 1}, {.node = 2}};
  EXPECT_EQ(device.settled(), (Flags{true, true})) << "beside a strict reserve";
  device.clients = {{.node = 3}};
  EXPECT_EQ(device.settled(), Flags{true}) << "below a max";
  device.clients = {{.node = 3}, {.node = 3}};
  EXPECT_EQ(device.settled(), (Flags{false, false})) << "two below one max";
  device.clients = {{.node = 2}, {.node = 3}};
  EXPECT_EQ(device.settled(), (Flags{false, false})) << "99 and all that the reserve leaves are more than there are";
}

TEST(SettledGrants, BelowAMaxBesideAReserveThatLeavesAsManySms) {
  Device device({slice(8, false), slice(0, false, 99)});
  device.nodes[1].hold = std::chrono::milliseconds(100);
  device.clients = {{.node = 1}, {.node = 2}};
  EXPECT_EQ(device.settled(), (Flags{true, true}));
  device.nodes[2].max = sched::kUnlimitedCapSM;
  EXPECT_EQ(device.settled(), (Flags{true, false})) << "an active reserve is lent at times";
  device.nodes[1].hold = {};
  EXPECT_EQ(device.settled(), (Flags{true, false})) << "one that is lent is wanted back at any time";
}

TEST(SettledGrants, NotAmongThoseWhoTakeTurnsAndNotInAStorm) {
  Device device({slice(0, false, 99)});
  device.clients = {{.node = 1, .under_policy = true}};
  EXPECT_EQ(device.settled(), Flags{false});
  device.where.time_sliced = true;
  EXPECT_EQ(device.settled(), Flags{false});
  device.clients = {{.node = 1}, {.node = 1}};
  EXPECT_EQ(device.settled(), (Flags{true, true})) << "on a time-sliced GPU nobody takes SMs away";
  device.where = {.capacity = CapSM{132}, .storms = true};
  EXPECT_EQ(device.settled(), (Flags{false, false}));
}

/// Whatever the demands and whoever is active, what a client with a settled grant uses is not taken away.
TEST(SettledGrants, StayWhateverTheClientsDemand) {
  Random random(19);
  const auto some = [&](std::uint64_t most) { return static_cast<std::uint32_t>(random.below(most)); };
  int settled = 0, others_shrink = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<sched::NodeInput> slices;
    for (int n = 0; n < 3; ++n) {
      slices.push_back(
          slice(some(2) ? 8 + some(30) : 0, some(2) != 0, some(2) ? 20 + some(110) : 1000, some(4) ? 100 : 200));
      if (!slices.back().strict && some(2)) slices.back().hold = std::chrono::milliseconds(100);
    }
    Device device(slices);
    for (std::uint32_t c = 0; c < 1 + some(3); ++c) device.clients.push_back({.node = 1 + some(3)});
    const std::vector<bool> found = device.settled();
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (device.decision.clients[i].free) continue;
      std::uint32_t least = UINT32_MAX, most = 0;  // where it demands everything
      for (int look = 0; look < 20; ++look) {
        for (sched::NodeInput& node : device.nodes) node.active = node.hold.count() > 0 && some(2);
        for (ClientState& client : device.clients) client.demand = some(3) ? some(133) : 132;
        const std::uint32_t demand = device.clients[i].demand = look < 10 ? 132 : 1 + some(132);
        const std::uint32_t grant = device.grants()[i];
        if (look < 10) {
          least = std::min(least, grant);
          most = std::max(most, grant);
        } else if (found[i]) {
          EXPECT_GE(grant, std::min(demand, least)) << "round " << round << " client " << i;
          EXPECT_LE(grant, most) << "round " << round << " client " << i;
        }
      }
      if (found[i]) {
        EXPECT_EQ(least, most) << "round " << round << " client " << i;
      }
      ++(found[i] ? settled : others_shrink);
    }
  }
  EXPECT_GT(settled, 50);
  EXPECT_GT(others_shrink, 50);
}

TEST(SettledGrants, NotWhereOthersGetWhatItDoesNotDemand) {
  Device device({slice(0, false, 40), slice(0, false, 131)});
  device.clients = {{.node = 1}, {.node = 2}};
  EXPECT_EQ(device.settled(), (Flags{false, false}));
  device.nodes[2].max = CapSM{92};
  EXPECT_EQ(device.settled(), (Flags{true, true})) << "there are enough for both";
}

TEST(SettledGrants, NobodysAmongMoreThanCanBeTogether) {
  Device device({slice(0, false, 2)});
  device.clients.assign(kMostToSettle + 1, {.node = 0});
  device.clients.back().node = 1;
  EXPECT_FALSE(device.settled().back());
}

/// "ls" with a reserve of 8, "batch" and "other" with nothing set, and a client in the first two.
Device beside_a_reserve(bool strict) {
  Device device({slice(8, strict), slice(0, false), slice(0, false)});
  if (!strict) device.nodes[1].hold = std::chrono::milliseconds(100);
  device.where.by_parts = true;
  device.clients = {{.node = 1}, {.node = 2, .demand = 132}};
  return device;
}

TEST(ByParts, BesideKeptReservesAlone) {
  Device device = beside_a_reserve(true);
  EXPECT_EQ(device.by_parts(), (Flags{false, true}));
  device.clients[1].demand = 1;
  EXPECT_EQ(device.by_parts(), (Flags{false, true}));
  device.where.by_parts = false;
  EXPECT_EQ(device.by_parts(), (Flags{false, false})) << "off";
}

TEST(ByParts, OnlyWhileAnActiveReserveIsKept) {
  Device device = beside_a_reserve(false);
  EXPECT_EQ(device.by_parts(), (Flags{false, false})) << "it is lent";
  device.nodes[1].active = true;
  EXPECT_EQ(device.by_parts(), (Flags{false, true}));
  device.nodes[1].active = false;
  device.nodes[1].hold = {};
  device.clients[0].demand = 8;
  EXPECT_EQ(device.grants()[1], 124u);
  EXPECT_EQ(device.by_parts(), (Flags{false, false})) << "one that is lent may be wanted back";
}

TEST(ByParts, NotWhereAnythingElseIsInForce) {
  const Flags none{false, false};
  Device device = beside_a_reserve(true);
  device.nodes[2].max = CapSM{100};
  EXPECT_EQ(device.by_parts(), none) << "a max";
  device.nodes[2].max = CapSM{0};
  EXPECT_EQ(device.by_parts(), none) << "suspended";
  device = beside_a_reserve(true);
  device.nodes[2].weight = 200;
  EXPECT_EQ(device.by_parts(), none) << "weights";
  device = beside_a_reserve(true);
  device.clients[1].under_policy = true;
  EXPECT_EQ(device.by_parts(), none) << "a policy for jobs";
  device = beside_a_reserve(true);
  device.where.always = true;
  EXPECT_EQ(device.by_parts(), none) << "always preemptible";
  device = beside_a_reserve(true);
  device.where.storms = true;
  EXPECT_EQ(device.by_parts(), none) << "a storm";
  device = beside_a_reserve(true);
  device.where.time_sliced = true;
  EXPECT_EQ(device.by_parts(), none) << "time-sliced";
}

TEST(ByParts, NotForTwoWhoShareWhatIsLeft) {
  Device device = beside_a_reserve(true);
  for (const std::uint32_t node : {2u, 3u}) {
    device.clients = {{.node = 1}, {.node = 2, .demand = 132}, {.node = node}};
    EXPECT_EQ(device.by_parts(), (Flags{false, false, false}));
  }
}

/// A device where kernels share each SM. An SM holds four workers of the first kernel and eight of the second.
class Beside : public testing::Test {
 protected:
  static constexpr sched::BlockShape kMemory{32, 16, 48 * 1024}, kThreads{256, 32, 0};
  Beside() {
    device_.where.sm = sched::sm_limits("9.0");
    device_.where.always = true;
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
