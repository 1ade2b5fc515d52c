#include "base/percentile.h"

#include <gtest/gtest.h>

namespace gpuctl {
namespace {

TEST(Percentile, OfNothingIsZero) {
  EXPECT_EQ(percentile({}, 0.5), 0);
}

TEST(Percentile, IsTheLeastValueThatTheShareDoesNotExceed) {
  const std::vector<double> values{1, 2, 3, 4};
  EXPECT_EQ(percentile(values, 0), 1);
  EXPECT_EQ(percentile(values, 0.25), 1);
  EXPECT_EQ(percentile(values, 0.26), 2);
  EXPECT_EQ(percentile(values, 0.5), 2);
  EXPECT_EQ(percentile(values, 0.99), 4);
  EXPECT_EQ(percentile(values, 1), 4);
}

}  // namespace
}  // namespace gpuctl
