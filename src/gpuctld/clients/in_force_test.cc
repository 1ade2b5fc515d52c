#include "gpuctld/clients/in_force.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"

namespace gpuctl::daemon {
namespace {

using sched::CapSM;
using Found = std::vector<InForce>;

/// The root, and slices directly below it, numbered from 1.
std::vector<sched::NodeInput> below_root(std::vector<sched::NodeInput> slices) {
  std::vector<sched::NodeInput> nodes{{.parent = -1, .reserve = CapSM{132}, .weight = 100}};
  for (sched::NodeInput& slice : slices) {
    if (slice.parent < 0) slice.parent = 0;
    nodes.push_back(slice);
  }
  return nodes;
}

Found look(const std::vector<sched::NodeInput>& nodes, const std::vector<Resident>& clients, bool time_sliced = false,
           bool storms = false) {
  return what_is_in_force(nodes, clients, {.capacity = CapSM{132}, .time_sliced = time_sliced, .storms = storms});
}

TEST(InForce, NothingWhereNothingIsSet) {
  const auto nodes = below_root({{.weight = 100}, {.weight = 100}});
  EXPECT_EQ(look(nodes, {}), Found{});
  EXPECT_EQ(look(nodes, {{1}, {2}, {0}}), (Found{InForce::nothing, InForce::nothing, InForce::nothing}));
}

/// Found here as in_force.h says it, node by node, however long that takes.
TEST(InForce, InAnyTreeItIsWhatTheDefinitionSays) {
  Random random(7);
  for (int tree = 0; tree < 300; ++tree) {
    std::vector<sched::NodeInput> nodes = below_root({});
    for (std::uint32_t n = 1 + random.below(12); n-- > 0;)
      nodes.push_back({.parent = static_cast<std::int32_t>(random.below(nodes.size())),
                       .reserve = CapSM{static_cast<std::uint32_t>(random.below(8) == 0)},
                       .strict = random.below(2) == 0,
                       .max = CapSM{random.below(8) == 0 ? 40u : 132u},
                       .weight = random.below(3) == 0 ? 200u : 100u});
    std::vector<Resident> clients(1 + random.below(6));
    for (Resident& client : clients) client.node = static_cast<std::uint32_t>(random.below(nodes.size()));

    const auto within = [&](std::size_t inner, std::size_t outer) {
      while (inner != outer && nodes[inner].parent >= 0) inner = static_cast<std::size_t>(nodes[inner].parent);
      return inner == outer;
    };
    const auto inhabited = [&](std::size_t n) {
      return std::ranges::any_of(clients, [&](const Resident& client) { return within(client.node, n); });
    };
    Found expected;
    for (const Resident& client : clients) {
      bool limited = false, beside_reserve = false, uneven = false;
      for (std::size_t n = 0; n < nodes.size(); ++n) {
        limited |= within(client.node, n) && nodes[n].max < CapSM{132};
        const bool kept = n > 0 && nodes[n].reserve > CapSM{} && (nodes[n].keeps_reserve() || inhabited(n));
        beside_reserve |= kept && !within(client.node, n);
        std::set<std::uint32_t> weights;
        for (const Resident& other : clients)
          if (other.node == n) weights.insert(sched::kWeightDefault);
        for (std::size_t child = 1; child < nodes.size(); ++child)
          if (nodes[child].parent == static_cast<std::int32_t>(n) && inhabited(child))
            weights.insert(nodes[child].weight);
        uneven |= within(client.node, n) && weights.size() > 1;
      }
      expected.push_back(limited          ? InForce::max
                         : beside_reserve ? InForce::reserve
                         : uneven         ? InForce::weights
                                          : InForce::nothing);
    }
    EXPECT_EQ(look(nodes, clients), expected) << "tree " << tree;
  }
}

TEST(InForce, PrioritiesAreTheHardwares) {
  const auto nodes = below_root({{.weight = 100, .priority = 50}, {.weight = 100}});
  EXPECT_EQ(look(nodes, {{1}, {2}}), (Found{InForce::nothing, InForce::nothing}));
}

TEST(InForce, AMaxBindsItsSliceAndThoseBelow) {
  const auto nodes = below_root({{.max = CapSM{40}, .weight = 100},
                                 {.weight = 100},
                                 {.parent = 1, .weight = 100},
                                 {.max = CapSM{132}, .weight = 100}});
  EXPECT_EQ(look(nodes, {{1}, {2}, {3}, {4}}), (Found{InForce::max, InForce::nothing, InForce::max, InForce::nothing}));
}

TEST(InForce, AReserveBindsAllOutsideOfIt) {
  const auto nodes = below_root({{.reserve = CapSM{8}, .weight = 100}, {.weight = 100}, {.parent = 1, .weight = 100}});
  EXPECT_EQ(look(nodes, {{1}, {2}, {3}, {0}}),
            (Found{InForce::nothing, InForce::reserve, InForce::nothing, InForce::reserve}));
  EXPECT_EQ(look(nodes, {{2}}), Found{InForce::reserve}) << "a strict one is kept for nobody too";
}

TEST(InForce, AReserveThatIsLentMattersWhileSomebodyIsThere) {
  const auto nodes = below_root({{.reserve = CapSM{8}, .strict = false, .weight = 100}, {.weight = 100}});
  EXPECT_EQ(look(nodes, {{2}}), Found{InForce::nothing});
  EXPECT_EQ(look(nodes, {{2}, {1}}), (Found{InForce::reserve, InForce::nothing}));
}

TEST(InForce, WeightsMatterAmongThoseWhoAreThere) {
  const auto nodes = below_root({{.weight = 200}, {.weight = 100}, {.parent = 1, .weight = 7}});
  EXPECT_EQ(look(nodes, {{1}}), Found{InForce::nothing});
  EXPECT_EQ(look(nodes, {{2}, {0}}), (Found{InForce::nothing, InForce::nothing}))
      << "the root's own count as one of default weight";
  EXPECT_EQ(look(nodes, {{1}, {2}}), (Found{InForce::weights, InForce::weights}));
  EXPECT_EQ(look(nodes, {{3}, {2}}), (Found{InForce::weights, InForce::weights}));
  EXPECT_EQ(look(nodes, {{3}, {1}}), (Found{InForce::weights, InForce::weights}))
      << "7 beside the default of its parent's own";
}

TEST(InForce, WhoTakesTurnsUnderAPolicyForJobs) {
  const auto nodes = below_root({{.weight = 100}});
  EXPECT_EQ(look(nodes, {{1, true}, {0}}), (Found{InForce::jobs, InForce::nothing}));
}

TEST(InForce, WeightsOfThoseWhoTakeTurnsAreForTheirPolicy) {
  const auto nodes = below_root({{.weight = 200}, {.weight = 100}});
  const Resident recorded{.node = 1, .reports_jobs = true}, rules{.node = 2, .reports_jobs = true, .takes_turns = true};
  EXPECT_EQ(look(nodes, {recorded, rules}), (Found{InForce::weights, InForce::jobs}));
}

TEST(InForce, WhereProgramsAreNeverTogetherOnlyTheirOwnLimitsMatter) {
  const auto nodes =
      below_root({{.reserve = CapSM{8}, .weight = 200}, {.max = CapSM{40}, .weight = 100}, {.weight = 100}});
  EXPECT_EQ(look(nodes, {{1}, {2}, {3}, {3, true}}, true),
            (Found{InForce::nothing, InForce::max, InForce::nothing, InForce::jobs}));
}

TEST(InForce, AStormIsForAll) {
  const auto nodes = below_root({{.max = CapSM{40}, .weight = 100}});
  EXPECT_EQ(look(nodes, {{1}, {0}}, false, true), (Found{InForce::storm, InForce::storm}));
}

TEST(InForce, AnAdministratorMayWantItAlways) {
  const auto nodes = below_root({{.max = CapSM{40}, .weight = 100}, {.weight = 100}});
  const std::vector<Resident> clients{{1}, {2}};
  const DaemonOptions always{.always_preemptible = true};
  EXPECT_EQ(what_is_in_force(nodes, clients, {.capacity = CapSM{132}, .options = &always}),
            (Found{InForce::max, InForce::always}));
}

TEST(InForce, EachHasAName) {
  EXPECT_EQ(name_of(InForce::always), "always");
  EXPECT_EQ(name_of(InForce::nothing), "nothing");
  EXPECT_EQ(name_of(InForce::storm), "storm");
}

}  // namespace
}  // namespace gpuctl::daemon
