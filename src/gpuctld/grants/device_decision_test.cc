#include "gpuctld/grants/device_decision.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "gpuctld/testing/device_inputs.h"

namespace gpuctl::daemon {
namespace {

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
  EXPECT_EQ(device.standings[1].guaranteed, 124u) << "while it is lent too";
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
  EXPECT_TRUE(device.decision.clients[0].free());
  EXPECT_FALSE(device.decision.clients[1].free());
  device.where.storms = true;
  device.decide();
  EXPECT_FALSE(device.decision.clients[0].free());
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
    EXPECT_TRUE(device.decision.clients[0].free());
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
  device.options.reserve_by_parts = true;
  EXPECT_EQ(device.modes(), (std::vector{ipc::Mode::free, ipc::Mode::free, ipc::Mode::common, ipc::Mode::free}));
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
  device.clients = {{.node = 1}, {.node = 2}};
  EXPECT_EQ(device.settled(), (Flags{true, true}));
  device.nodes[2].max = sched::kUnlimitedCapSM;
  EXPECT_EQ(device.settled(), (Flags{true, false})) << "an active reserve is lent at times";
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
    for (int n = 0; n < 3; ++n)
      slices.push_back(
          slice(some(2) ? 8 + some(30) : 0, some(2) != 0, some(2) ? 20 + some(110) : 1000, some(4) ? 100 : 200));
    Device device(slices);
    for (std::uint32_t c = 0; c < 1 + some(3); ++c) device.clients.push_back({.node = 1 + some(3)});
    const std::vector<bool> found = device.settled();
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (device.decision.clients[i].free()) continue;
      std::uint32_t least = UINT32_MAX, most = 0;  // where it demands everything
      for (int look = 0; look < 20; ++look) {
        for (sched::NodeInput& node : device.nodes) node.active = false;
        for (const ClientState& client :
             device.clients) {  // without a client a slice becomes active by none that is there
          sched::NodeInput& node = device.nodes[client.node];
          node.active |= node.hold.count() > 0 && some(2);
        }
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

/// Where its kernels keep their original form.
std::uint32_t sms_of(const Device& device, ipc::Mode mode, std::size_t client) {
  if (mode == ipc::Mode::common) return device.standings[client].guaranteed;
  return mode == ipc::Mode::lent || mode == ipc::Mode::free ? device.where.capacity.count
                                                            : device.decision.clients[client].capsm;
}

/// What a client is settled on now is not less later, whatever the demands and whoever is active.
TEST(SettledGrants, WhatCannotShrinkDoesNot) {
  Random random(23);
  const auto some = [&](std::uint64_t most) { return static_cast<std::uint32_t>(random.below(most)); };
  int kept_now = 0;
  for (int round = 0; round < 300; ++round) {
    // While one reserve is lent and another is kept, grants divide what is left.
    Device device({slice(8 + some(30), false), slice(0, false), slice(0, false)});
    device.options.reserve_by_parts = true;
    for (std::uint32_t node = 1; node <= 3; ++node)
      if (node == 3 || some(2)) device.clients.push_back({.node = node});
    const auto change = [&] {
      device.nodes[1].active = some(2) != 0;
      for (ClientState& client : device.clients) client.demand = some(3) ? some(133) : 132;
      device.clients.back().demand = 132;
    };
    change();
    const ipc::Mode mode = device.modes().back();
    if (mode == ipc::Mode::free || !device.decision.clients.back().settled) continue;
    ++kept_now;
    const std::uint32_t before = sms_of(device, mode, device.clients.size() - 1);
    for (int look = 0; look < 20; ++look) {
      change();
      const ipc::Mode later = device.modes().back();
      EXPECT_GE(sms_of(device, later, device.clients.size() - 1), before) << "round " << round;
    }
  }
  EXPECT_GT(kept_now, 30);
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

using enum ipc::Mode;
using Modes = std::vector<ipc::Mode>;

TEST(Modes, BesideKeptReservesAlone) {
  Device device = beside_a_reserve(true);
  EXPECT_EQ(device.modes(), (Modes{free, common}));
  device.clients[1].demand = 1;
  EXPECT_EQ(device.modes(), (Modes{free, common}));
  device.options.reserve_by_parts = false;
  EXPECT_EQ(device.modes(), (Modes{free, workers})) << "off";
}

TEST(Modes, OnlyWhileAnActiveReserveIsKept) {
  Device device = beside_a_reserve(false);
  EXPECT_EQ(device.modes(), (Modes{free, lent})) << "it is lent";
  device.nodes[1].active = true;
  EXPECT_EQ(device.modes(), (Modes{free, common}));
  device.nodes[1].active = false;
  device.clients[0].demand = 8;
  EXPECT_EQ(device.grants()[1], 124u);
  EXPECT_EQ(device.modes(), (Modes{free, lent})) << "its work was not noticed yet";
}

TEST(Modes, NotWhereAnythingElseIsInForce) {
  Device device = beside_a_reserve(true);
  device.nodes[2].max = CapSM{0};
  EXPECT_EQ(device.modes(), (Modes{free, workers})) << "suspended";
  device = beside_a_reserve(true);
  device.nodes[2].weight = 200;
  EXPECT_EQ(device.modes(), (Modes{workers, workers})) << "weights";
  device = beside_a_reserve(true);
  device.clients[1].under_policy = true;
  EXPECT_EQ(device.modes(), (Modes{free, workers})) << "a policy for jobs";
  device = beside_a_reserve(true);
  device.options.always_preemptible = true;
  EXPECT_EQ(device.modes(), (Modes{workers, workers})) << "always preemptible";
  device = beside_a_reserve(true);
  device.where.storms = true;
  EXPECT_EQ(device.modes(), (Modes{workers, workers})) << "a storm";
  device = beside_a_reserve(true);
  device.where.time_sliced = true;
  EXPECT_EQ(device.modes(), (Modes{free, free})) << "time-sliced";
}

}  // namespace
}  // namespace gpuctl::daemon
