#include "sched/allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "sched/slice.h"

namespace gpuctl::sched::allocator_test {
namespace {

const Policy* const kShare = &policies().front();

NodeInput root() {
  return {.parent = -1, .policy = kShare};
}

NodeInput child(std::int32_t parent, std::uint32_t reserve, bool strict, std::uint32_t max = kUnlimitedCapSM.count,
                std::uint32_t weight = 100) {
  return {.parent = parent,
          .reserve = CapSM{reserve},
          .strict = strict,
          .max = CapSM{max},
          .weight = weight,
          .policy = kShare};
}

ClientInput client(std::uint32_t node, std::uint32_t demand) {
  return {node, CapSM{demand}};
}

Decision decide(const std::vector<NodeInput>& nodes, const std::vector<ClientInput>& clients,
                std::uint32_t capacity = 132) {
  Allocator allocator;
  Decision decision;
  allocator.decide(nodes, clients, CapSM{capacity}, decision);
  return decision;
}

std::vector<std::uint32_t> grants(const Decision& decision) {
  std::vector<std::uint32_t> counts;
  for (const ClientDecision& c : decision.clients) counts.push_back(c.grant.count);
  return counts;
}

using Counts = std::vector<std::uint32_t>;

TEST(Allocator, AStrictReserveStaysFreeWhileIdle) {
  const auto decision = decide({root(), child(0, 8, true), child(0, 0, true)}, {client(1, 0), client(2, 132)});
  EXPECT_EQ(grants(decision), (Counts{8, 124}));
}

TEST(Allocator, AStrictReserveIsKeptEvenWithoutAnyClient) {
  EXPECT_EQ(grants(decide({root(), child(0, 8, true), child(0, 0, true)}, {client(2, 132)})), (Counts{124}));
}

TEST(Allocator, ALentReserveIsUsedByOthersAndTakenBack) {
  const std::vector<NodeInput> nodes{root(), child(0, 8, false), child(0, 0, true)};
  EXPECT_EQ(grants(decide(nodes, {client(1, 0), client(2, 132)})), (Counts{0, 132}));
  EXPECT_EQ(grants(decide(nodes, {client(1, 8), client(2, 132)})), (Counts{8, 124}));
}

TEST(Allocator, AboveTheReserveWeightDecides) {
  const auto decision = decide({root(), child(0, 32, true), child(0, 0, true)}, {client(1, 132), client(2, 132)});
  EXPECT_EQ(grants(decision), (Counts{32 + 50, 50}));
}

TEST(Allocator, MaxHoldsEvenWhenTheRestIsIdle) {
  EXPECT_EQ(grants(decide({root(), child(0, 0, true, 40)}, {client(1, 132)})), (Counts{40}));
  EXPECT_EQ(grants(decide({root(), child(0, 0, true, 40)}, {client(1, 0)})), (Counts{40}));
  EXPECT_EQ(grants(decide({root(), child(0, 0, true, 0)}, {client(1, 5)})), (Counts{0}));
}

TEST(Allocator, AParentsMaxBoundsTheSubtree) {
  const std::vector<NodeInput> nodes{root(), child(0, 0, true, 30), child(1, 0, true), child(1, 0, true, 100)};
  EXPECT_EQ(grants(decide(nodes, {client(2, 132), client(3, 132)})), (Counts{15, 15}));
}

TEST(Allocator, ClientsOfASliceDivideByDemand) {
  EXPECT_EQ(grants(decide({root(), child(0, 0, true, 60)}, {client(1, 10), client(1, 132), client(1, 132)})),
            (Counts{10, 25, 25}));
}

TEST(Allocator, WhatNobodyDemandsIsHeadroom) {
  EXPECT_EQ(grants(decide({root(), child(0, 0, true)}, {client(1, 0)})), (Counts{132}));
  EXPECT_EQ(grants(decide({root(), child(0, 0, true)}, {client(1, 10)})), (Counts{132}));
  EXPECT_EQ(grants(decide({root(), child(0, 0, true), child(0, 0, true)}, {client(1, 32), client(2, 0)})),
            (Counts{132, 0}));
  EXPECT_EQ(grants(decide({root(), child(0, 0, true), child(0, 0, true)}, {client(1, 0), client(2, 0)})),
            (Counts{66, 66}));
  EXPECT_EQ(grants(decide({root(), child(0, 0, true), child(0, 0, true)}, {client(1, 32), client(2, 1)})),
            (Counts{32 + 50, 1 + 49}));
}

TEST(Allocator, WhileNobodyHasDemandHeadroomStaysWithTheLatest) {
  ClientInput latest = client(1, 0), other = client(2, 0);
  latest.latest = true;
  const std::vector<NodeInput> nodes{root(), child(0, 0, true), child(0, 0, true, 60)};
  EXPECT_EQ(grants(decide(nodes, {latest, other})), (Counts{132, 0}));
  EXPECT_EQ(grants(decide(nodes, {latest, client(2, 1)})), (Counts{72, 60}));
  other.node = 1;
  EXPECT_EQ(grants(decide(nodes, {latest, other})), (Counts{132, 0}));
  latest.node = 2;
  EXPECT_EQ(grants(decide(nodes, {latest, other})), (Counts{60, 72}));  // what `latest` may not have
}

TEST(Allocator, HeadroomIsForThoseOfASliceWhoHaveDemand) {
  EXPECT_EQ(grants(decide({root(), child(0, 0, true)}, {client(1, 10), client(1, 0)})), (Counts{132, 0}));
  EXPECT_EQ(grants(decide({root(), child(0, 0, true)}, {client(0, 0), client(1, 10)})), (Counts{0, 132}));
}

TEST(Allocator, ARestingStrictReserveIsForEachClientOfItsSlice) {
  const std::vector<NodeInput> nodes{root(), child(0, 8, true), child(0, 0, true)};
  const auto idle = decide(nodes, {client(1, 0), client(1, 0), client(2, 132)});
  EXPECT_EQ(grants(idle), (Counts{8, 8, 124}));
  EXPECT_EQ(idle.clients[0].own, CapSM{0});
  EXPECT_EQ(grants(decide(nodes, {client(1, 3), client(1, 0), client(2, 132)})), (Counts{8, 5, 124}));
  EXPECT_EQ(grants(decide(nodes, {client(1, 8), client(1, 8), client(2, 132)})), (Counts{8, 8, 116}));
}

/// Where nobody is and nothing is wanted nothing is looked at; a client is somebody even if it may have nothing.
TEST(Allocator, WhoMayHaveNothingKeepsNothingOfADecisionBefore) {
  const std::vector<NodeInput> nodes{root(), child(0, 0, true), child(1, 0, true)};
  Allocator allocator;
  Decision decision;
  std::vector<ClientInput> clients{client(2, 50)};
  allocator.decide(nodes, clients, CapSM{132}, decision);
  EXPECT_EQ(grants(decision), (Counts{132}));
  clients[0].demand = clients[0].most = CapSM{};
  allocator.decide(nodes, clients, CapSM{132}, decision);
  EXPECT_EQ(grants(decision), (Counts{0}));
  EXPECT_EQ(decision.clients[0].due, Due{0});
}

TEST(Allocator, ClientsOfAnInnerNodeCountAsOneChild) {
  EXPECT_EQ(grants(decide({root(), child(0, 0, true)}, {client(0, 132), client(1, 132)})), (Counts{66, 66}));
}

TEST(Allocator, AStrictChildOfALendingParentIsStillKept) {
  const std::vector<NodeInput> nodes{root(), child(0, 20, false), child(1, 6, true), child(0, 0, true)};
  const auto decision = decide(nodes, {client(2, 0), client(3, 132)});
  EXPECT_EQ(grants(decision), (Counts{6, 126}));
  EXPECT_EQ(decision.nodes[1].given, CapSM{6});
}

/// SMGuard, Algorithm 1: a reservation gets what it asks for, evicting if need be; a quota gets at most what remains.
struct SmGuard {
  std::uint32_t remain;
  std::uint32_t reserve(std::uint32_t request, std::uint32_t& quota_task) {
    if (request > remain) {
      const std::uint32_t gap = request - remain;
      quota_task -= gap;
      remain += gap;
    }
    remain -= request;
    return request;
  }
  std::uint32_t quota(std::uint32_t request) {
    const std::uint32_t got = std::min(request, remain);
    remain -= got;
    return got;
  }
};

TEST(Allocator, SmGuardAlgorithm1IsASpecialCase) {
  constexpr std::uint32_t kSms = 24;
  for (std::uint32_t reservation = 0; reservation <= kSms; ++reservation) {
    for (std::uint32_t quota = 0; quota <= kSms; ++quota) {
      // A reservation is a reserve and a max of that size; a quota a max. Both run kernels that fill any GPU.
      for (const bool strict : {true, false}) {
        const auto ours = decide({root(), child(0, reservation, strict, reservation), child(0, 0, true, quota)},
                                 {client(1, kSms), client(2, kSms)}, kSms);
        SmGuard batch_first{kSms};
        std::uint32_t batch = batch_first.quota(quota);
        const std::uint32_t ls = batch_first.reserve(reservation, batch);
        ASSERT_EQ(grants(ours), (Counts{ls, batch})) << reservation << " " << quota;

        SmGuard ls_first{kSms};
        std::uint32_t nobody = 0;
        const std::uint32_t first = ls_first.reserve(reservation, nobody);
        ASSERT_EQ(grants(ours), (Counts{first, ls_first.quota(quota)})) << reservation << " " << quota;
      }
      // Before the reservation's task arrives, a lent reserve leaves the quota task alone.
      const auto alone = decide({root(), child(0, reservation, false, reservation), child(0, 0, true, quota)},
                                {client(2, kSms)}, kSms);
      ASSERT_EQ(grants(alone), (Counts{SmGuard{kSms}.quota(quota)}));
    }
  }
}

// Random trees.

struct Case {
  std::vector<NodeInput> nodes;
  std::vector<ClientInput> clients;
  CapSM capacity;
};

Case random_case(std::mt19937& random) {
  Case result;
  result.capacity = CapSM{1 + static_cast<std::uint32_t>(random() % 132)};
  result.nodes.push_back(root());
  result.nodes[0].reserve = result.capacity;
  std::vector<std::uint32_t> unreserved{result.capacity.count};
  const std::size_t count = random() % 10;
  for (std::size_t i = 0; i < count; ++i) {
    const auto parent = static_cast<std::uint32_t>(random() % result.nodes.size());
    const std::uint32_t reserve = random() % 2 ? 0 : random() % (unreserved[parent] + 1);
    unreserved[parent] -= reserve;
    unreserved.push_back(reserve);
    const std::uint32_t max = random() % 2 ? kUnlimitedCapSM.count : reserve + random() % 100;
    result.nodes.push_back(child(static_cast<std::int32_t>(parent), reserve, random() % 2, max, 1 + random() % 400));
  }
  for (std::size_t i = random() % 12; i-- > 0;)
    result.clients.push_back(client(random() % result.nodes.size(), random() % 3 ? random() % 200 : 0));
  return result;
}

bool is_leaf(const Case& c, std::size_t node) {
  for (const NodeInput& other : c.nodes)
    if (other.parent == static_cast<std::int32_t>(node)) return false;
  return true;
}

/// How much of the node's `given` went neither to a child nor to the demand of its own clients.
CapSM left_in(const Case& c, const Decision& decision, std::size_t node) {
  CapSM left = decision.nodes[node].given;
  for (std::size_t i = 1; i < c.nodes.size(); ++i)
    if (c.nodes[i].parent == static_cast<std::int32_t>(node)) left -= decision.nodes[i].given;
  for (std::size_t k = 0; k < c.clients.size(); ++k)
    if (c.clients[k].node == node) left -= std::min(decision.clients[k].own, c.clients[k].demand);
  return left;
}

TEST(AllocatorProperties, NeverMoreThanThereIs) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    const Case c = random_case(random);
    const Decision decision = decide(c.nodes, c.clients, c.capacity.count);
    ASSERT_LE(decision.nodes[0].given + decision.nodes[0].headroom, c.capacity);
    for (std::size_t node = 0; node < c.nodes.size(); ++node) {
      const CapSM total = decision.nodes[node].given + decision.nodes[node].headroom;
      ASSERT_LE(total, c.nodes[node].max);
      std::uint32_t inside = 0, at_rest = 0;
      for (std::size_t i = 1; i < c.nodes.size(); ++i)
        if (c.nodes[i].parent == static_cast<std::int32_t>(node))
          inside += (decision.nodes[i].given + decision.nodes[i].headroom).count;
      for (std::size_t k = 0; k < c.clients.size(); ++k) {
        if (c.clients[k].node != node) continue;
        inside += decision.clients[k].own.count;
        at_rest = (decision.clients[k].grant - decision.clients[k].own).count;
        ASSERT_LE(decision.clients[k].grant, total);
      }
      ASSERT_LE(inside + at_rest, total.count);
      if (at_rest != 0) {
        ASSERT_TRUE(is_leaf(c, node) && c.nodes[node].keeps_reserve());
        ASSERT_LE(at_rest, c.nodes[node].reserve.count);
      }
    }
  }
}

TEST(AllocatorProperties, ReservesAreAlwaysHonoured) {
  std::mt19937 random(2);
  for (int round = 0; round < 20000; ++round) {
    const Case c = random_case(random);
    const Decision decision = decide(c.nodes, c.clients, c.capacity.count);
    for (std::size_t node = 1; node < c.nodes.size(); ++node) {
      ASSERT_GE(decision.nodes[node].given, std::min(c.nodes[node].reserve, decision.nodes[node].demand));
      if (c.nodes[node].keeps_reserve()) {
        ASSERT_GE(decision.nodes[node].given, c.nodes[node].reserve);
      }
    }
  }
}

TEST(AllocatorProperties, NobodyWaitsWhileAnythingHeMayHaveLiesIdle) {
  std::mt19937 random(3);
  int waiting = 0;
  for (int round = 0; round < 20000; ++round) {
    const Case c = random_case(random);
    const Decision decision = decide(c.nodes, c.clients, c.capacity.count);
    for (std::size_t k = 0; k < c.clients.size(); ++k) {
      if (decision.clients[k].grant >= std::min(c.clients[k].demand, c.capacity)) continue;
      ++waiting;
      for (std::int32_t n = static_cast<std::int32_t>(c.clients[k].node); n >= 0;
           n = c.nodes[static_cast<std::size_t>(n)].parent) {
        const auto node = static_cast<std::size_t>(n);
        ASSERT_EQ(left_in(c, decision, node), CapSM{0});
        if (decision.nodes[node].given >= c.nodes[node].max) break;
      }
    }
  }
  EXPECT_GT(waiting, 1000);  // enough cases have clients that wait
}

TEST(AllocatorProperties, TheSameQuestionHasTheSameAnswer) {
  std::mt19937 random(4);
  Allocator used;
  for (int round = 0; round < 5000; ++round) {
    const Case c = random_case(random);
    Decision first, again;
    used.decide(c.nodes, c.clients, c.capacity, first);
    used.decide(c.nodes, c.clients, c.capacity, again);
    EXPECT_EQ(grants(first), grants(again));
    EXPECT_EQ(grants(first), grants(decide(c.nodes, c.clients, c.capacity.count)));
  }
}

TEST(AllocatorProperties, ClientsNeedNotStandSideBySide) {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    const Case scattered = random_case(random);
    std::vector<std::size_t> order(scattered.clients.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return scattered.clients[a].node < scattered.clients[b].node;
    });
    Case grouped = scattered;
    for (std::size_t i = 0; i < order.size(); ++i) grouped.clients[i] = scattered.clients[order[i]];
    Allocator allocator;
    Decision of_scattered, of_grouped;
    allocator.decide(scattered.nodes, scattered.clients, scattered.capacity, of_scattered);
    allocator.decide(grouped.nodes, grouped.clients, grouped.capacity, of_grouped);
    for (std::size_t i = 0; i < order.size(); ++i) {
      EXPECT_EQ(of_grouped.clients[i].grant, of_scattered.clients[order[i]].grant) << round;
      EXPECT_EQ(of_grouped.clients[i].own, of_scattered.clients[order[i]].own) << round;
    }
  }
}

TEST(AllocatorProperties, DemandingWhatOneWasGivenChangesNothing) {
  std::mt19937 random(5);
  for (int round = 0; round < 5000; ++round) {
    Case c = random_case(random);
    for (ClientInput& input : c.clients) input.demand = std::max(input.demand, CapSM{1});
    const Decision before = decide(c.nodes, c.clients, c.capacity.count);
    for (std::size_t k = 0; k < c.clients.size(); ++k)
      c.clients[k].demand = std::min(c.clients[k].demand, before.clients[k].own);
    const Decision after = decide(c.nodes, c.clients, c.capacity.count);
    for (std::size_t k = 0; k < c.clients.size(); ++k) EXPECT_GE(after.clients[k].grant, c.clients[k].demand);
  }
}

}  // namespace
}  // namespace gpuctl::sched::allocator_test
