#include "sched/bounds.h"

#include <gtest/gtest.h>

#include <random>

#include "sched/slice_tree.h"
#include "sched/testing/random_slices.h"

namespace gpuctl::sched::bounds_test {
namespace {

constexpr Caller kRoot{0, {}};
constexpr CapSM kDevice{132};

NodeInput slice(std::int32_t parent, std::uint32_t reserve, bool strict, std::uint32_t max = kUnlimitedCapSM.count) {
  return {.parent = parent,
          .reserve = CapSM{reserve},
          .strict = strict,
          .hold = std::chrono::milliseconds(strict ? 0 : 1),
          .max = CapSM{max}};
}

/// The root, followed by `slices`.
std::vector<std::uint32_t> guaranteed_of(std::vector<NodeInput> slices,
                                         std::uint32_t root_max = kUnlimitedCapSM.count) {
  slices.insert(slices.begin(), slice(-1, kDevice.count, true, root_max));
  std::vector<std::uint32_t> counts;
  for (const CapSM sms : guaranteed(slices, kDevice)) counts.push_back(sms.count);
  return counts;
}

using Counts = std::vector<std::uint32_t>;

TEST(Sure, AllWhereNothingIsSet) {
  EXPECT_EQ(guaranteed_of({slice(0, 0, false), slice(1, 0, false)}), (Counts{132, 132, 132}));
}

TEST(Sure, TheLeastMaxOnThePath) {
  EXPECT_EQ(guaranteed_of({slice(0, 0, false, 40), slice(1, 0, false, 60), slice(1, 0, false, 4), slice(0, 0, false)}),
            (Counts{132, 40, 40, 4, 132}));
  EXPECT_EQ(guaranteed_of({slice(0, 0, false)}, 100), (Counts{100, 100}));
}

TEST(Sure, StrictReservesOfOthersAreNeverTheirs) {
  EXPECT_EQ(guaranteed_of({slice(0, 8, true), slice(0, 0, false), slice(0, 30, true)}), (Counts{94, 102, 94, 124}));
  EXPECT_EQ(guaranteed_of({slice(0, 8, true), slice(0, 0, false, 130)}), (Counts{124, 132, 124}));
  EXPECT_EQ(guaranteed_of({slice(0, 8, true), slice(0, 0, false, 40)}), (Counts{124, 132, 40}));
}

TEST(Sure, ReservesThatAreKeptWhileTheirSliceIsActiveAreNeverTheirs) {
  EXPECT_EQ(guaranteed_of({slice(0, 8, false), slice(0, 0, false)}), (Counts{124, 132, 124}));
}

TEST(Sure, AReserveWithinAReserveCountsOnce) {
  // Slice 1 keeps 40 SMs free; slice 2 below it keeps 10 of these.
  EXPECT_EQ(guaranteed_of({slice(0, 40, true), slice(1, 10, true), slice(1, 0, false), slice(0, 0, false)}),
            (Counts{92, 122, 132, 122, 92}));
}

TEST(Sure, WithinAMaxWhatIsKeptThereIsTakenFromIt) {
  EXPECT_EQ(guaranteed_of({slice(0, 40, false, 60), slice(1, 20, true), slice(1, 0, false)}), (Counts{92, 40, 60, 40}));
}

TEST(Sure, NeverNothing) {
  EXPECT_EQ(guaranteed_of({slice(0, 132, true), slice(0, 0, false)}), (Counts{1, 132, 1}));
  EXPECT_EQ(guaranteed_of({slice(0, 0, false, 0)}), (Counts{132, 1}));
  // A device that is smaller than what the tree keeps free.
  const std::vector<NodeInput> nodes{slice(-1, 132, true), slice(0, 100, true), slice(0, 30, true)};
  EXPECT_EQ(guaranteed(nodes, CapSM{16}), (std::vector<CapSM>{CapSM{1}, CapSM{1}, CapSM{1}}));
}

TEST(Sure, IsWhatTheAllocatorGivesToWhoAsksAlone) {
  std::mt19937 random(7);
  const auto upto = [&](std::uint32_t most) { return std::uniform_int_distribution<std::uint32_t>(0, most)(random); };
  for (int round = 0; round < 300; ++round) {
    SliceTree tree(kDevice, 0);
    const auto below = [&](std::size_t n) { return upto(static_cast<std::uint32_t>(n - 1)); };
    add_random_slices(tree, "/", 6, kRoot, below, [&] {
      SliceChange change{.reserve = upto(40), .reserve_mode = std::string(kReserveModes[upto(1)])};
      if (upto(2) == 0) change.max = upto(60) + 40;
      return change;
    });
    std::vector<NodeInput> nodes = tree.nodes();
    for (NodeInput& node : nodes) node.active = node.may_keep_reserve();
    const std::vector<CapSM> told = guaranteed(nodes, kDevice);
    for (std::uint32_t n = 0; n < nodes.size(); ++n) {
      Allocator allocator;
      Decision decision;
      const std::vector<ClientInput> clients{{n, kDevice}};
      allocator.decide(nodes, clients, kDevice, decision);
      EXPECT_EQ(decision.clients[0].grant, told[n]) << "round " << round << ", node " << n;
    }
  }
}

TEST(Most, IsTheLeastMaxOnThePathAlone) {
  const std::vector<NodeInput> nodes{slice(-1, 132, true), slice(0, 8, true, 60), slice(1, 0, false),
                                     slice(0, 0, false)};
  EXPECT_EQ(most_of(nodes, 2, kDevice), CapSM{60});
  EXPECT_EQ(most_of(nodes, 3, kDevice), kDevice);
}

}  // namespace
}  // namespace gpuctl::sched::bounds_test
