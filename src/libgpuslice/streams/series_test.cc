#include "libgpuslice/streams/series.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "libgpuslice/streams/lane.h"

namespace gpuslice {

namespace {

const auto kBlocking = reinterpret_cast<CUstream>(0x10), kOtherBlocking = reinterpret_cast<CUstream>(0x20),
           kApart = reinterpret_cast<CUstream>(0x30);

}  // namespace

/// In place of the driver's answer.
bool is_apart(CUstream stream) {
  return stream == kApart;
}

namespace {

TEST(OpenSeries, HoldsUpItsStreamAndDefaultStreamsThatAreOrderedWithIt) {
  const OpenSeries blocking(kBlocking, false);
  EXPECT_TRUE(blocking.holds_up(kBlocking, false));
  EXPECT_TRUE(blocking.holds_up(CU_STREAM_LEGACY, false));
  EXPECT_FALSE(blocking.holds_up(kOtherBlocking, false));
  EXPECT_FALSE(blocking.holds_up(kApart, true));
  const OpenSeries apart(kApart, true);
  EXPECT_TRUE(apart.holds_up(kApart, true));
  EXPECT_FALSE(apart.holds_up(CU_STREAM_LEGACY, false));
  const OpenSeries legacy(CU_STREAM_LEGACY, false);
  EXPECT_TRUE(legacy.holds_up(kBlocking, false));
  EXPECT_FALSE(legacy.holds_up(kApart, true));
}

TEST(OpenSeries, HoldsUpThePerThreadStreamOfItsOwnThread) {
  const OpenSeries own(CU_STREAM_PER_THREAD, false);
  EXPECT_TRUE(own.holds_up(CU_STREAM_PER_THREAD, false));
  std::thread([&] { EXPECT_FALSE(own.holds_up(CU_STREAM_PER_THREAD, false)); }).join();
}

/// Whether `call`, in another thread, comes after the end of a series.
template <class Call>
bool waits_for_series(CUstream stream, Call call) {
  std::atomic<bool> ending{false}, was_ending{false}, began{false};
  std::optional<OpenSeries> series(std::in_place, stream, is_apart(stream));
  std::thread other([&] {
    began = true;
    call();
    was_ending = ending.load();
  });
  while (!began) std::this_thread::yield();
  ending = true;
  series.reset();
  other.join();
  return was_ending;
}

TEST(OpenSeries, EndsBeforeCallsAboutItsStream) {
  EXPECT_TRUE(waits_for_series(kBlocking, [] { let_series_end(kBlocking); }));
  EXPECT_TRUE(waits_for_series(kApart, [] { let_series_end(kApart); }));
  EXPECT_TRUE(waits_for_series(kBlocking, [] { let_series_end(CU_STREAM_LEGACY); }));
  EXPECT_TRUE(waits_for_series(kBlocking, [] { let_all_series_end(); }));
}

TEST(OpenSeries, LetsOtherCallsThrough) {
  const OpenSeries apart(kApart, true);
  std::thread([] {
    let_all_series_end();
    let_series_end(kBlocking);
  }).join();
}

// Its own launches must not wait for their series.
TEST(OpenSeries, LetsItsOwnThreadThrough) {
  const OpenSeries own(kBlocking, false);
  let_series_end(kBlocking);
  let_all_series_end();
}

TEST(OpenSeries, AreCounted) {
  EXPECT_EQ(g_open_series, 0);
  {
    const OpenSeries one(kBlocking, false), two(kApart, true);
    EXPECT_EQ(g_open_series, 2);
  }
  EXPECT_EQ(g_open_series, 0);
}

}  // namespace
}  // namespace gpuslice
