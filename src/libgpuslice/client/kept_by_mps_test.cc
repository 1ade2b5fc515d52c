#include "libgpuslice/client/kept_by_mps.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

using Text = std::optional<std::string>;

TEST(PercentageToSet, IsTheWantedOneUnlessTheProgramAsksForNoMore) {
  EXPECT_EQ(percentage_to_set(nullptr, 74), Text("74"));
  EXPECT_EQ(percentage_to_set("100", 74), Text("74"));
  EXPECT_EQ(percentage_to_set("74.5", 74), Text("74"));
  EXPECT_EQ(percentage_to_set("74", 74), Text());
  EXPECT_EQ(percentage_to_set("50", 74), Text());
  EXPECT_EQ(percentage_to_set("7.5", 74), Text());
}

TEST(PercentageToSet, WhatIsNoNumberIsTheProgramsOwnMatter) {
  for (const char* own : {"", "all", "90 %", "nan"}) EXPECT_EQ(percentage_to_set(own, 74), Text()) << own;
}

}  // namespace
}  // namespace gpuslice
