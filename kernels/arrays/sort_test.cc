#include "kernels/arrays/sort.h"

#include <gtest/gtest.h>

#include <map>

namespace gpuctl::bench::sort {
namespace {

TEST(Sort, OrdersByKeyAndKeepsTheOrderOfEqualKeys) {
  constexpr std::uint32_t kPairs = 1500;
  const Problem problem = generate({kPairs}, 3);
  Words pairs = problem.inputs[0];
  const Words out = reference({kPairs}, problem);
  std::map<std::uint32_t, Words> values;
  for (std::size_t i = 0; i < pairs.size(); i += 2) values[pairs[i]].push_back(pairs[i + 1]);
  EXPECT_LT(values.size(), kPairs);  // some keys repeat
  std::size_t at = 0;
  for (const auto& [key, of_key] : values) {
    for (const std::uint32_t value : of_key) {
      ASSERT_EQ(out[at], key);
      ASSERT_EQ(out[at + 1], value);
      at += 2;
    }
  }
  EXPECT_EQ(at, out.size());
}

}  // namespace
}  // namespace gpuctl::bench::sort
