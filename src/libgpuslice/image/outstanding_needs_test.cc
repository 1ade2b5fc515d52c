#include "libgpuslice/image/outstanding_needs.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

gpuctl::ipc::WorkerNeeds kind(std::uint16_t threads) {
  return {.threads = threads, .registers = 32, .per_sm = 1};
}

TEST(OutstandingNeeds, CountLaunchesThatAreAlikeOnce) {
  OutstandingNeeds needs;
  needs.add(kind(32));
  needs.add(kind(32));
  EXPECT_EQ(needs.gained(), 1u);
  needs.add(kind(64));
  EXPECT_EQ(needs.gained(), 2u);
  ASSERT_EQ(needs.kinds().size(), 2u);
  needs.remove(kind(32));
  EXPECT_EQ(needs.kinds().size(), 2u);
  needs.remove(kind(32));
  ASSERT_EQ(needs.kinds().size(), 1u);
  EXPECT_EQ(needs.kinds()[0], kind(64));
  needs.add(kind(32));
  EXPECT_EQ(needs.gained(), 3u);
}

TEST(OutstandingNeeds, TooManyAreNotKnownUntilTheyAreGone) {
  OutstandingNeeds needs;
  for (std::uint16_t i = 1; i <= gpuctl::ipc::kMostNeeds; ++i) needs.add(kind(i));
  EXPECT_EQ(needs.kinds().size(), gpuctl::ipc::kMostNeeds);
  needs.add(kind(100));
  EXPECT_TRUE(needs.kinds().empty());
  needs.remove(kind(3));
  EXPECT_TRUE(needs.kinds().empty()) << "there is one that is not listed";
  needs.add(kind(100));
  needs.remove(kind(100));
  needs.remove(kind(100));
  EXPECT_EQ(needs.kinds().size(), gpuctl::ipc::kMostNeeds - 1);
}

}  // namespace
}  // namespace gpuslice
