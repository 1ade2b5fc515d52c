#include "libgpuslice/base/pair_choice.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

TEST(PairChoice, OnlyOfWhatIsInCommon) {
  PairChoice choice;
  EXPECT_TRUE(choice.pairs_for(true, 1));
  EXPECT_FALSE(choice.pairs_for(false, 1));
  EXPECT_TRUE(choice.pairs_for(true, 2)) << "clusters of two run in pairs";
}

TEST(PairChoice, GreaterClustersMakeItGroupsForGood) {
  for (const bool common : {true, false}) {
    PairChoice choice;
    EXPECT_FALSE(choice.pairs_for(common, 3));
    EXPECT_FALSE(choice.pairs_for(true, 1));
  }
}

TEST(PairChoice, SoDoesARefusalForAWhile) {
  PairChoice choice;
  choice.refused();
  choice.refused();
  EXPECT_FALSE(choice.pairs_for(true, 1));
}

}  // namespace
}  // namespace gpuslice
