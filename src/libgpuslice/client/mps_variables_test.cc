#include "libgpuslice/client/mps_variables.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

using Text = std::optional<std::string>;

TEST(PercentageToSet, IsTheWantedOneUnlessTheProgramAsksForNoMore) {
  EXPECT_EQ(percentage_to_set(nullptr, 7462), Text("74.62"));
  EXPECT_EQ(percentage_to_set("100", 7405), Text("74.05"));
  EXPECT_EQ(percentage_to_set("74.5", 7400), Text("74.00"));
  EXPECT_EQ(percentage_to_set("74", 7400), Text());
  EXPECT_EQ(percentage_to_set("50", 7462), Text());
  EXPECT_EQ(percentage_to_set("7.5", 7462), Text());
}

TEST(PercentageToSet, WhatIsNoNumberIsTheProgramsOwnMatter) {
  for (const char* own : {"", "all", "90 %", "nan"}) EXPECT_EQ(percentage_to_set(own, 7462), Text()) << own;
}

}  // namespace
}  // namespace gpuslice
