#include "sched/latency/control.h"

#include <gtest/gtest.h>

#include <string>

#include "sched/effective/levels.h"
#include "sched/policy.h"
#include "sched/testing/latency_plant.h"

namespace gpuctl::sched::latency_control_test {

using namespace plant;

namespace {

NodeInput node(std::int32_t parent, std::uint32_t reserve = 0, std::int32_t priority = 0) {
  return {.parent = parent, .reserve = CapSM{reserve}, .priority = priority, .policy = &policies().front()};
}

bool any(const std::string&) {
  return true;
}

/// A device, and slices below it at random.
std::vector<NodeInput> random_tree(Random& random) {
  std::vector<NodeInput> nodes{node(-1, 132)};
  std::vector<std::uint32_t> left{100};
  for (std::uint64_t n = 2 + random.below(8); n > 0; --n) {
    const auto parent = static_cast<std::int32_t>(random.below(nodes.size()));
    const auto reserve = static_cast<std::uint32_t>(random.below(3) == 0 ? 0 : random.below(left[parent] / 2 + 1));
    left[static_cast<std::size_t>(parent)] -= reserve;
    left.push_back(reserve);
    nodes.push_back(node(parent, reserve, static_cast<std::int32_t>(random.below(5)) - 2));
    nodes.back().strict = random.below(2) == 0;
    nodes.back().weight = static_cast<std::uint32_t>(1 + random.below(200));
    if (random.below(4) == 0) nodes.back().max = CapSM{reserve + static_cast<std::uint32_t>(random.below(60))};
    if (parent > 0)
      nodes.back().priority = std::min(nodes.back().priority, nodes[static_cast<std::size_t>(parent)].priority);
  }
  return nodes;
}

WithTarget random_protected(const std::vector<NodeInput>& nodes, Random& random) {
  return {.node = static_cast<std::uint32_t>(1 + random.below(nodes.size() - 1)),
          .rungs = rungs(static_cast<int>(random.below(2)), static_cast<int>(random.below(kTurnRungs + 1)),
                         static_cast<int>(random.below(20))),
          .at_most = ms(static_cast<double>(1 + random.below(5)))};
}

/// What a client with more work than the device has there gets in each node.
std::vector<CapSM> divided(const std::vector<NodeInput>& nodes) {
  std::vector<ClientInput> clients;
  for (std::uint32_t n = 0; n < nodes.size(); ++n) clients.push_back({.node = n, .demand = CapSM{132}});
  Allocator allocator;
  Decision decision;
  allocator.decide(nodes, clients, CapSM{132}, decision);
  std::vector<CapSM> given;
  for (const ClientDecision& client : decision.clients) given.push_back(client.own);
  return given;
}

TEST(LatencyControl, NeverGivesItsSliceLess) {
  Random random(1);
  for (int round = 0; round < 3000; ++round) {
    SCOPED_TRACE(round);
    const std::vector<NodeInput> before = random_tree(random);
    const std::vector<WithTarget> slices{random_protected(before, random)};
    const std::size_t mine = slices[0].node;
    std::vector<NodeInput> kept = before;
    keep_for(kept, slices);
    EXPECT_GE(kept[mine].reserve, before[mine].reserve);
    EXPECT_GE(kept[mine].strict, before[mine].strict);
    EXPECT_LE(kept[mine].reserve, before[mine].max);
    for (std::size_t n = 0; n < kept.size(); ++n) {
      std::uint32_t below = 0;
      for (const NodeInput& child : kept)
        if (std::cmp_equal(child.parent, n)) below += child.reserve.count;
      EXPECT_LE(below, kept[n].reserve.count);
      EXPECT_TRUE(n == mine || kept[n].reserve == before[n].reserve);
    }
    const std::vector<CapSM> was = divided(before), is = divided(kept);
    CapSM was_all{}, is_all{};
    for (std::size_t n = 0; n < was.size(); ++n)
      each_up_to_root(before, n, [&](std::size_t up) {
        if (up == mine) was_all += was[n], is_all += is[n];
      });
    EXPECT_GE(is_all, was_all);

    std::vector<NodeInput> raised = before;
    const std::vector<std::int32_t> by = raise_levels(raised, slices);
    std::vector<LevelClient> clients, now;
    for (std::uint32_t n = 0; n < before.size(); ++n) {
      clients.push_back({n, before[n].priority});
      now.push_back({n, before[n].priority + by[n]});
    }
    const std::vector<LevelRange> levels_before = levels_of(before, clients), levels = levels_of(raised, now);
    EXPECT_GE(levels[mine].end(), levels_before[mine].end());
    EXPECT_GE(levels[mine].first, levels_before[mine].first);

    const auto turns = longest_turns(before, slices);
    each_up_to_root(before, mine,
                    [&](std::size_t up) { EXPECT_TRUE(!turns[up] || std::cmp_equal(up, before[mine].parent)); });
  }
}

TEST(LatencyControl, LeavesAloneWhoIsNoPeer) {
  // 0 device, 1 a, 2 a/ls, 3 a/batch, 4 b, 5 b/c
  const std::vector<NodeInput> nodes{node(-1, 132), node(0, 40), node(1), node(1), node(0), node(4)};
  const std::vector<WithTarget> inner{{.node = 2, .rungs = rungs(1, 3, 1), .at_most = ms(1)}};
  EXPECT_TRUE(yields(nodes, 3, inner[0], inner));
  EXPECT_TRUE(yields(nodes, 1, inner[0], inner));  // a program directly in a
  for (const std::size_t n : {0, 2, 4, 5}) EXPECT_FALSE(yields(nodes, n, inner[0], inner)) << n;
  const auto turns = longest_turns(nodes, inner);
  EXPECT_EQ(turns[3], turn_at(3));
  for (const std::size_t n : {0, 2, 4, 5}) EXPECT_FALSE(turns[n]) << n;

  const std::vector<WithTarget> outer{{.node = 1, .rungs = rungs(1, 3, 1), .at_most = ms(1)}};
  for (const std::size_t n : {0, 4, 5}) EXPECT_TRUE(yields(nodes, n, outer[0], outer)) << n;
  for (const std::size_t n : {1, 2, 3}) EXPECT_FALSE(yields(nodes, n, outer[0], outer)) << n;
}

TEST(LatencyControl, YieldsToTheStricterTarget) {
  const std::vector<NodeInput> nodes{node(-1, 132), node(0), node(0), node(0)};
  const WithTarget strict{.node = 1, .rungs = rungs(1, 3, 4), .at_most = ms(1)},
      lax{.node = 2, .rungs = rungs(1, 5, 14), .at_most = ms(5)}, unknown{.node = 2, .rungs = rungs(1, 5, 14)};
  for (const WithTarget& other : {lax, unknown}) {
    const std::vector<WithTarget> slices{other, strict};
    EXPECT_TRUE(yields(nodes, 2, strict, slices));
    EXPECT_FALSE(yields(nodes, 1, other, slices));
    const auto turns = longest_turns(nodes, slices);
    EXPECT_FALSE(turns[1]);
    EXPECT_EQ(turns[2], turn_at(3));
    EXPECT_EQ(turns[3], turn_at(5));
    std::vector<NodeInput> kept = nodes;
    keep_for(kept, slices);
    EXPECT_EQ(kept[1].reserve, CapSM{32});
    EXPECT_EQ(kept[2].reserve, CapSM{100});
    std::vector<NodeInput> raised = nodes;
    raise_levels(raised, slices);
    EXPECT_GT(raised[1].priority, raised[2].priority);
    EXPECT_GT(raised[2].priority, raised[3].priority);
  }
  // Its level alone does not bring the laxer one before the stricter one.
  WithTarget still = strict;
  still.rungs = {};
  std::vector<NodeInput> raised = nodes;
  raise_levels(raised, std::vector<WithTarget>{still, lax});
  EXPECT_GE(raised[1].priority, raised[2].priority);
  EXPECT_GT(raised[2].priority, raised[3].priority);
}

TEST(LatencyControl, LeavesPeersAQuarter) {
  std::vector<NodeInput> nodes{node(-1, 132), node(0), node(0, 50)};
  const std::vector<WithTarget> slices{{.node = 1, .at_most = ms(1)}};
  EXPECT_EQ(most_kept(nodes, slices)[0], CapSM{132 - 50 - 33});
  nodes[1].max = CapSM{20};
  EXPECT_EQ(most_kept(nodes, slices)[0], CapSM{20});
  nodes[2].reserve = CapSM{132};
  EXPECT_EQ(most_kept(nodes, slices)[0], CapSM{0});
}

TEST(LatencyControl, KeepsWhatIsKnownOfASliceThatStays) {
  LatencyControl control;
  const std::vector<LatencyControl::Target> targets{{"ls", 1, {.at_most = ms(1)}}, {"web", 2, {.multiple = 2}}};
  control.renew(targets, any);
  const std::vector<NodeInput> nodes{node(-1, 132), node(0), node(0)};
  LatencyHistogram bursts;
  bursts.add(ms(5), 20);
  for (double now = 100; now < 101; now += 0.1) {
    std::vector<LatencyStep> steps(2, LatencyStep{.now = seconds(now), .active = true, .last = rungs(1, 0, 9)});
    LatencyHistogram none;
    steps[0].bursts = &bursts, steps[1].bursts = &none;
    control.step(nodes, steps);
  }
  const Rungs turned = control.find("ls")->rungs();
  EXPECT_NE(turned, Rungs{});
  control.renew(std::vector<LatencyControl::Target>{{"ls", 2, {.at_most = ms(1)}}}, any);
  EXPECT_EQ(control.find("ls")->rungs(), turned);
  EXPECT_EQ(control.find("web"), nullptr);
  control.renew(std::vector<LatencyControl::Target>{{"ls", 2, {.at_most = ms(2)}}}, any);
  EXPECT_EQ(control.find("ls")->rungs(), Rungs{});
  control.renew({}, any);
  EXPECT_TRUE(control.entries().empty());
}

TEST(LatencyControl, KeepsWhatASliceTakesAloneWhateverItsTargetBecomes) {
  LatencyControl control;
  LatencyHistogram bursts;
  bursts.add(ms(2), 40);
  control.saw_alone("ls", bursts, seconds(1));
  const auto set = [&](LatencyTarget target) {
    control.renew(std::vector<LatencyControl::Target>{{"ls", 1, target}}, any);
    return control.find("ls")->at_most();
  };
  EXPECT_NEAR(static_cast<double>(set({.multiple = 2}).count()), 4e6, 3e5);
  EXPECT_NEAR(static_cast<double>(set({.multiple = 3}).count()), 6e6, 4e5);
  control.renew({}, any);
  EXPECT_NEAR(static_cast<double>(set({.multiple = 2}).count()), 4e6, 3e5);
  control.renew({}, [](const std::string&) { return false; });  // the slice is gone, and another one comes
  EXPECT_EQ(set({.multiple = 2}).count(), 0);
}

/// Two slices, each of which gets better as the other yields, beside a third.
TEST(LatencyControl, DoesNotSwingBetweenTwoTargets) {
  for (int seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    LatencyControl control;
    control.renew(std::vector<LatencyControl::Target>{{"a", 1, {.at_most = ms(3)}}, {"b", 2, {.at_most = ms(6)}}}, any);
    const std::vector<NodeInput> nodes{node(-1, 132), node(0), node(0), node(0)};
    int changes = 0;
    std::uint64_t count[2] = {}, longer[2] = {};
    for (double at_s = 1000; at_s < 2200; at_s += 0.1) {
      if (at_s < 1300) changes = 0, count[0] = count[1] = longer[0] = longer[1] = 0;
      std::vector<NodeInput> kept = nodes;
      keep_for(kept, control.slices());
      LatencyHistogram ended[2];
      std::vector<LatencyStep> steps;
      for (int i = 0; i < 2; ++i) {
        const double own = kept[1 + i].reserve.count, others = kept[2 - i].reserve.count;
        const double blocked = std::max(0.0, 8 - own / 6) + 0.02 * others;
        for (double left = 10; (left -= random.exponential(1)) >= 0;) {
          const double took = about(1.4, 0.1, random) + blocked * random.uniform();
          ended[i].add(ms(took));
          ++count[i], longer[i] += took > (i == 0 ? 3 : 6);
        }
        steps.push_back({.now = seconds(at_s), .bursts = &ended[i], .active = true, .last = rungs(0, 0, 9)});
      }
      changes += control.step(nodes, steps);
    }
    for (int i = 0; i < 2; ++i) EXPECT_LE(static_cast<double>(longer[i]), 0.012 * static_cast<double>(count[i])) << i;
    EXPECT_LE(changes, 3 * 15);
    EXPECT_LE(control.find("b")->rungs()[2], control.find("a")->rungs()[2]);
  }
}

}  // namespace
}  // namespace gpuctl::sched::latency_control_test
