#include "gpuctld/grants/parts.h"

#include <gtest/gtest.h>

#include "gpuctld/testing/device_inputs.h"
#include "sched/bounds.h"

namespace gpuctl::daemon {
namespace {

constexpr std::uint32_t kNone = sched::kUnlimitedCapSM.count;

struct Slice {
  std::int32_t parent;
  std::uint32_t max;
  std::uint32_t reserve = 0;  ///< strict
};

/// On a device of 132 SMs. The root is not among `slices`, which are numbered from 1.
Counts parts(const std::vector<Slice>& slices) {
  std::vector<sched::NodeInput> nodes{slice(132, true)};
  nodes[0].parent = -1;
  for (const Slice& one : slices) {
    nodes.push_back(slice(one.reserve, true, one.max));
    nodes.back().parent = one.parent;
  }
  const Counts all = parts_of(nodes, sched::guaranteed(nodes, CapSM{132}), CapSM{132});
  return {all.begin() + 1, all.end()};
}

TEST(Parts, BeginAtTheBeginning) {
  EXPECT_EQ(parts({{0, kNone}, {0, 99}}), (Counts{0, 0}));
}

TEST(Parts, LieBesideEachOtherIfThereIsRoom) {
  EXPECT_EQ(parts({{0, 66}, {0, kNone}, {0, 66}}), (Counts{0, 0, 66}));
  EXPECT_EQ(parts({{0, 40}, {0, 30}, {0, 20}}), (Counts{0, 40, 70}));
}

TEST(Parts, AreSpreadElse) {
  EXPECT_EQ(parts({{0, 99}, {0, 99}}), (Counts{0, 32}));
  EXPECT_EQ(parts({{0, 99}, {0, 66}, {0, 99}}), (Counts{0, 32, 32}));
}

TEST(Parts, LieWithinThoseAbove) {
  EXPECT_EQ(parts({{0, 66}, {0, 66}, {2, 40}, {2, kNone}, {4, 20}, {3, 40}}), (Counts{0, 66, 66, 66, 106, 66}));
}

TEST(Parts, LieBehindReserves) {
  EXPECT_EQ(parts({{0, kNone, 14}, {0, kNone}, {0, 60}, {0, 58}}), (Counts{14, 14, 14, 74}));
  EXPECT_EQ(parts({{0, kNone, 14}, {0, 99}, {0, 99}}), (Counts{14, 14, 32}));
}

TEST(Parts, OfASuspendedSliceTakeNothing) {
  EXPECT_EQ(parts({{0, 0}, {0, 66}, {0, 66}}), (Counts{0, 0, 66}));
}

}  // namespace
}  // namespace gpuctl::daemon
