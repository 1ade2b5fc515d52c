#include "libgpuslice/launch/streams_used.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

TEST(StreamsUsed, TheSecondStreamIsToldOfAndNoOther) {
  const StreamKey one{nullptr, 1}, other{nullptr, 2}, third{nullptr, 3};
  StreamsUsed used;
  EXPECT_FALSE(used.add(one));
  EXPECT_FALSE(used.add(one));
  EXPECT_FALSE(used.several());
  EXPECT_TRUE(used.add(other));
  EXPECT_TRUE(used.several());
  EXPECT_FALSE(used.add(third));
  EXPECT_FALSE(used.add(one));
  EXPECT_TRUE(used.several());
}

}  // namespace
}  // namespace gpuslice
