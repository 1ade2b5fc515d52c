#include "sched/effective/kept_by_mps.h"

#include <gtest/gtest.h>

#include <random>

#include "sched/bounds.h"
#include "sched/slice_tree.h"
#include "sched/testing/random_slices.h"

namespace gpuctl::sched::kept_by_mps_test {
namespace {

constexpr Caller kRoot{0, {}};
constexpr CapSM kDevice{132}, kNoCap = kUnlimitedCapSM;

NodeInput slice(std::int32_t parent, std::uint32_t reserve, bool strict, std::uint32_t max = kUnlimitedCapSM.count) {
  return {.parent = parent, .reserve = CapSM{reserve}, .strict = strict, .max = CapSM{max}};
}

/// The root, followed by `slices`, without what the caps keep.
std::vector<NodeInput> left_of(std::vector<NodeInput> slices, const std::vector<CappedClient>& clients) {
  slices.insert(slices.begin(), slice(-1, kDevice.count, true));
  KeptByMps(slices, clients, kDevice).lift(slices);
  return slices;
}

TEST(MostEver, CountsWhatIsNeverLent) {
  NodeInput active = slice(0, 20, false);
  active.hold = std::chrono::milliseconds(1);
  const std::vector<NodeInput> nodes{slice(-1, 132, true), slice(0, 8, true), active, slice(0, 0, false, 99),
                                     slice(3, 0, false, 130)};
  EXPECT_EQ(most_ever(nodes, kDevice), (std::vector<CapSM>{CapSM{124}, CapSM{132}, CapSM{124}, CapSM{99}, CapSM{99}}));
}

TEST(KeptToFewer, CountsPairs) {
  EXPECT_TRUE(kept_to_fewer(CapSM{98}, kNoCap));
  EXPECT_TRUE(kept_to_fewer(CapSM{98}, CapSM{100}));
  EXPECT_FALSE(kept_to_fewer(CapSM{98}, CapSM{99}));
  EXPECT_FALSE(kept_to_fewer(CapSM{98}, CapSM{40}));
}

TEST(SmsOfHundredths, ArePairs) {
  const auto of = [](std::uint32_t hundredths, std::uint32_t device) {
    return sms_of_hundredths(hundredths, CapSM{device}).count;
  };
  EXPECT_EQ(of(7400, 132), 96u);  // these three were seen on an H100
  EXPECT_EQ(of(7450, 132), 98u);
  EXPECT_EQ(of(7500, 132), 98u);
  EXPECT_EQ(of(5000, 8), 4u);
  EXPECT_EQ(of(1, 132), 2u);
  EXPECT_EQ(of(10000, 132), 132u);
  EXPECT_EQ(of(10000, 9), 9u);
}

TEST(HundredthsFor, IsWhatHasThePairsThatFit) {
  EXPECT_EQ(hundredths_for(CapSM{99}, kDevice), 7462u);
  EXPECT_EQ(hundredths_for(CapSM{4}, CapSM{8}), 5625u);
  EXPECT_EQ(hundredths_for(kDevice, kDevice), std::nullopt);
  EXPECT_EQ(hundredths_for(kUnlimitedCapSM, kDevice), std::nullopt);
  EXPECT_EQ(hundredths_for(CapSM{1}, kDevice), std::nullopt) << "a pair is more";
  for (std::uint32_t device = 2; device <= 256; ++device) {
    for (std::uint32_t most = 2; most < device; ++most) {
      const std::uint32_t hundredths = hundredths_for(CapSM{most}, CapSM{device}).value();
      EXPECT_EQ(sms_of_hundredths(hundredths, CapSM{device}).count, most - most % 2) << most << " of " << device;
    }
  }
}

TEST(KeptByMps, WithoutACapNothingIs) {
  const std::vector<NodeInput> nodes{slice(-1, 132, true), slice(0, 8, true), slice(0, 0, false, 99)};
  EXPECT_FALSE(KeptByMps(nodes, {}, kDevice).any());
  const std::vector<CappedClient> clients{{1, kNoCap}, {2, kNoCap}, {2, kDevice}};
  EXPECT_FALSE(KeptByMps(nodes, clients, kDevice).any());
}

TEST(KeptByMps, AMaxIfTheCapsBelowAddUpToNoMore) {
  const auto max_with = [](const std::vector<CappedClient>& clients) {
    return left_of({slice(0, 0, false, 99), slice(1, 0, false), slice(0, 0, false, 40)}, clients)[1].max;
  };
  EXPECT_EQ(max_with({{1, CapSM{98}}}), kUnlimitedCapSM);
  EXPECT_EQ(max_with({{1, CapSM{99}}, {0, kNoCap}, {3, kNoCap}}), kUnlimitedCapSM) << "others do not matter";
  EXPECT_EQ(max_with({{1, CapSM{50}}, {2, CapSM{49}}}), kUnlimitedCapSM);
  EXPECT_EQ(max_with({{1, CapSM{50}}, {2, CapSM{50}}}), CapSM{99});
  EXPECT_EQ(max_with({{1, CapSM{50}}, {2, kNoCap}}), CapSM{99});
  EXPECT_EQ(max_with({{1, CapSM{100}}}), CapSM{99});
  EXPECT_EQ(max_with({{3, CapSM{40}}}), CapSM{99}) << "nobody is there";
}

TEST(KeptByMps, AReserveIfTheCapsOfAllOthersLeaveIt) {
  const auto reserve_with = [](const std::vector<CappedClient>& clients) {
    const NodeInput node = left_of({slice(0, 34, true), slice(0, 0, false)}, clients)[1];
    EXPECT_EQ(node.keeps_reserve(), node.reserve > CapSM{});
    return node.reserve.count;
  };
  EXPECT_EQ(reserve_with({{1, kNoCap}, {2, CapSM{98}}}), 0u);
  EXPECT_EQ(reserve_with({{1, kNoCap}, {2, CapSM{99}}}), 34u);
  EXPECT_EQ(reserve_with({{2, CapSM{49}}, {0, CapSM{49}}}), 0u);
  EXPECT_EQ(reserve_with({{2, CapSM{49}}, {0, kNoCap}}), 34u);
  EXPECT_EQ(reserve_with({{1, CapSM{20}}}), 34u) << "nobody is beside it";
}

TEST(KeptByMps, AReserveOnlyWithThoseWithinIt) {
  // Slice 2 below slice 1 has a part of its reserve; a client of slice 1 may be on all SMs.
  const auto left =
      left_of({slice(0, 40, true), slice(1, 10, true), slice(0, 0, false)}, {{1, kNoCap}, {2, kNoCap}, {3, CapSM{80}}});
  EXPECT_EQ(left[1].reserve, CapSM{40});
  EXPECT_EQ(left[2].reserve, CapSM{10});
}

/// What no client gets more of than the bounds of the whole tree allow.
struct Crowd {
  explicit Crowd(std::mt19937& random) {
    const auto upto = [&](std::uint32_t most) { return std::uniform_int_distribution<std::uint32_t>(0, most)(random); };
    const auto below = [&](std::size_t n) { return upto(static_cast<std::uint32_t>(n - 1)); };
    add_random_slices(tree, "/", 6, kRoot, below, [&] {
      SliceChange change{.reserve = upto(40), .reserve_mode = std::string(kReserveModes[upto(1)])};
      if (upto(1) == 0) change.max = upto(100) + 40;
      return change;
    });
    nodes = tree.nodes();
    for (NodeInput& node : nodes) node.active = node.may_keep_reserve() && upto(1) == 0;
    const std::vector<CapSM> most = most_ever(nodes, kDevice);
    for (std::uint32_t n = upto(3) + 1; n > 0; --n) {
      const std::uint32_t node = upto(static_cast<std::uint32_t>(nodes.size() - 1));
      const std::uint32_t cap = most[node].count / (upto(2) + 1);
      capped.push_back({node, upto(3) == 0 || cap == 0 ? kNoCap : CapSM{cap}});
      asked.push_back({node, std::min(CapSM{upto(132)}, capped.back().cap)});
    }
  }

  bool within(std::size_t inner, std::size_t outer) const {
    for (auto n = static_cast<std::int32_t>(inner); n >= 0; n = nodes[static_cast<std::size_t>(n)].parent)
      if (static_cast<std::size_t>(n) == outer) return true;
    return false;
  }

  SliceTree tree{kDevice, 0};
  std::vector<NodeInput> nodes;
  std::vector<CappedClient> capped;
  std::vector<ClientInput> asked;
};

TEST(KeptByMps, NobodyGetsMoreThanTheBoundsAllow) {
  std::mt19937 random(11);
  int lifted = 0;
  for (int round = 0; round < 2000; ++round) {
    const Crowd crowd(random);
    const KeptByMps kept(crowd.nodes, crowd.capped, kDevice);
    lifted += kept.any();
    std::vector<NodeInput> left = crowd.nodes;
    kept.lift(left);
    Allocator allocator;
    Decision decision;
    allocator.decide(left, crowd.asked, kDevice, decision);
    for (std::size_t n = 0; n < crowd.nodes.size(); ++n) {
      std::uint32_t inside = 0, outside = 0;
      for (std::size_t c = 0; c < crowd.capped.size(); ++c) {
        const CapSM used = std::min(decision.clients[c].own, crowd.capped[c].cap);
        (crowd.within(crowd.capped[c].node, n) ? inside : outside) += used.count;
      }
      EXPECT_LE(inside, crowd.nodes[n].max.count) << "round " << round << ", node " << n;
      const CapSM reserve = n > 0 && crowd.nodes[n].keeps_reserve() ? crowd.nodes[n].reserve : CapSM{};
      EXPECT_LE(outside + reserve.count, kDevice.count) << "round " << round << ", node " << n;
    }
  }
  EXPECT_GT(lifted, 200);
}

}  // namespace
}  // namespace gpuctl::sched::kept_by_mps_test
