#include "libgpuslice/launch/subgrid_size.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

TEST(SubgridSize, IsOneWaveUntilATimeIsKnown) {
  EXPECT_EQ(subgrid_blocks(10000, 132, 0, 100'000), 132u);
  EXPECT_EQ(subgrid_blocks(100, 132, 0, 100'000), 100u);
}

TEST(SubgridSize, IsAsManyWavesAsFit) {
  EXPECT_EQ(subgrid_blocks(10000, 132, 20'000, 100'000), 5 * 132u);
  EXPECT_EQ(subgrid_blocks(10000, 132, 19'000, 100'000), 5 * 132u);
  EXPECT_EQ(subgrid_blocks(10000, 132, 21'000, 100'000), 4 * 132u);
}

// Half a wave takes as long as a whole one.
TEST(SubgridSize, IsNeverLessThanAWave) {
  EXPECT_EQ(subgrid_blocks(10000, 132, 5'000'000, 100'000), 132u);
  EXPECT_EQ(subgrid_blocks(131, 132, 5'000'000, 100'000), 131u);
}

TEST(SubgridSize, IsWhatIsLeftAtTheEnd) {
  EXPECT_EQ(subgrid_blocks(7, 132, 20'000, 100'000), 7u);
  EXPECT_EQ(subgrid_blocks(1, 1, 1, 1e9), 1u);
  EXPECT_EQ(subgrid_blocks(0x3fffffff, 1, 1e-6, 1e9), 0x3fffffffu);
}

TEST(SubgridSize, CoversEveryGridOnce) {
  for (const std::uint64_t total : {1ull, 131ull, 132ull, 133ull, 1000ull, 99999ull}) {
    std::uint64_t first = 0;
    int subgrids = 0;
    while (first < total) {
      first += subgrid_blocks(total - first, 132, 30'000, 100'000);
      ++subgrids;
    }
    EXPECT_EQ(first, total);
    EXPECT_EQ(subgrids, static_cast<int>((total + 395) / 396));
  }
}

TEST(SubgridSize, CountsBegunWaves) {
  EXPECT_EQ(subgrid_waves(1, 132), 1);
  EXPECT_EQ(subgrid_waves(132, 132), 1);
  EXPECT_EQ(subgrid_waves(133, 132), 2);
}

TEST(SubgridSize, LetsOneWaitAndMoreIfTheyAreShort) {
  EXPECT_TRUE(may_launch_subgrid(0, 0, 100'000));
  EXPECT_TRUE(may_launch_subgrid(1, 1e9, 100'000));
  EXPECT_FALSE(may_launch_subgrid(2, 200'000, 100'000));
  EXPECT_TRUE(may_launch_subgrid(2, 90'000, 100'000));
  EXPECT_FALSE(may_launch_subgrid(kMostSubgrids, 1, 100'000));
}

}  // namespace
}  // namespace gpuslice
