#include "base/plural.h"

#include <gtest/gtest.h>

namespace gpuctl {
namespace {

TEST(Plural, OneHasNoS) {
  EXPECT_EQ(plural(0, "SM"), "0 SMs");
  EXPECT_EQ(plural(1, "SM"), "1 SM");
  EXPECT_EQ(plural(12400, "slice"), "12400 slices");
}

}  // namespace
}  // namespace gpuctl
