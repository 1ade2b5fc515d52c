#include "gpuctl/text/suggest.h"

#include <gtest/gtest.h>

namespace gpuctl::cli {
namespace {

TEST(Suggest, EditDistance) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("batch", "batch"), 0u);
  EXPECT_EQ(edit_distance("bacth", "batch"), 1u);  // a swap
  EXPECT_EQ(edit_distance("btch", "batch"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Suggest, ClosestNameOrNone) {
  const std::vector<std::string> names{"ls", "batch", "batch/train", "/"};
  EXPECT_EQ(closest("bacth", names), "batch");
  EXPECT_EQ(closest("sl", names), "ls");
  EXPECT_EQ(closest("lss", names), "ls");
  EXPECT_EQ(closest("batch/trian", names), "batch/train");
  EXPECT_EQ(closest("completely", names), std::nullopt);
  EXPECT_EQ(closest("x", names), std::nullopt);  // no name is nearer than its own length
  EXPECT_EQ(closest("prio", {"priority", "policy"}), "priority");
  EXPECT_EQ(closest("re", {"reserve", "reserve-mode"}), std::nullopt);  // begins both
}

TEST(Suggest, HintListsFewNames) {
  EXPECT_EQ(hint("bacth", {"batch", "ls"}), "; did you mean 'batch'?");
  EXPECT_EQ(hint("zzzzz", {"batch", "ls"}), "; known: batch, ls");
  EXPECT_EQ(hint("zzzzz", {}), "");
  EXPECT_EQ(hint("zzzzz", std::vector<std::string>(13, "name")), "");
}

}  // namespace
}  // namespace gpuctl::cli
