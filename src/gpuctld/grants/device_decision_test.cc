#include "gpuctld/grants/device_decision.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(first, (Counts{32, 100}));
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

}  // namespace
}  // namespace gpuctl::daemon
