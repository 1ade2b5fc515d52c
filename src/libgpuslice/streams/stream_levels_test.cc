#include "libgpuslice/streams/stream_levels.h"

#include <gtest/gtest.h>

namespace gpuslice::stream_levels_test {
namespace {

CUstream handle(std::uintptr_t number) {
  return reinterpret_cast<CUstream>(16 * number);
}

TEST(StreamLevels, AreWhatTheProgramAskedForElseItsCudaPriority) {
  StreamLevels levels;
  const auto level = [&](std::uintptr_t stream) { return levels.of({handle(stream), 0}).level; };
  EXPECT_EQ(level(1), 0);
  levels.made(handle(2), -3);
  EXPECT_EQ(level(2), 3) << "the lower number goes first in CUDA";
  levels.ask(handle(2), -7);
  EXPECT_EQ(level(2), -7);
  levels.changed(handle(2), -1);
  EXPECT_EQ(level(2), -7);
  levels.copied(handle(3), handle(2));
  EXPECT_EQ(level(3), -7);
  levels.ask(handle(2), 1 << 20);
  EXPECT_EQ(level(2), StreamLevels::kMost);
}

TEST(StreamLevels, NumberStreamsAndNeverTwiceTheSame) {
  StreamLevels levels;
  const auto number = [&](std::uintptr_t stream) { return levels.of({handle(stream), 0}).number; };
  levels.made(handle(5), 0);
  EXPECT_EQ(number(6), 1u);
  EXPECT_EQ(number(5), 2u);
  EXPECT_EQ(number(6), 1u);
  levels.ask(handle(6), 4);
  levels.destroyed(handle(6));
  EXPECT_EQ(number(6), 3u);
  EXPECT_EQ(levels.of({handle(6), 0}).level, 0) << "the next stream of that handle is another one";
}

TEST(StreamLevels, ANewStreamHasNothingOfTheOneThatHadItsHandle) {
  StreamLevels levels;
  const StreamKey stream{handle(1), 0};
  levels.ask(handle(1), 5);
  EXPECT_EQ(levels.of(stream).number, 1u);
  levels.made(handle(1), -2);
  EXPECT_EQ(levels.of(stream).level, 2);
  EXPECT_EQ(levels.of(stream).number, 2u);
  levels.ask(CU_STREAM_LEGACY, 5);
  levels.forget(nullptr);  // the current context, of this driver
  EXPECT_EQ(levels.of({CU_STREAM_LEGACY, 0}).level, 0);
}

}  // namespace
}  // namespace gpuslice::stream_levels_test
