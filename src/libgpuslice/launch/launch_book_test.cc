#include "libgpuslice/launch/launch_book.h"

#include <gtest/gtest.h>

#include <set>

#include "ipc/stub_map.h"
#include "libgpuslice/testing/fake_driver.h"

namespace gpuslice {
namespace {

constexpr std::uint64_t kNow = 1'000'000'000;

CUstream stream_number(std::uintptr_t number) {
  return reinterpret_cast<CUstream>(number * 16);
}

class LaunchBookTest : public testing::Test {
 protected:
  /// Books a launch that the driver took.
  Launch& add(CUstream handle) {
    Stream& stream = book_.stream_of(handle);
    auto launch = std::make_unique<Launch>();
    launch->instance = &kernel_.instance;
    launch->slot = book_.take_slot(stream).value();
    launch->issued = true;
    Launch& raw = *launch;
    book_.add(stream, std::move(launch));
    return raw;
  }
  void complete(const Launch& launch) { gpuctl::ipc::store(book_.host(launch).done, 1u); }
  /// The numbers of the launches that are taken out.
  std::vector<std::uint64_t> take_out() {
    std::vector<std::uint64_t> numbers;
    const bool any = book_.take_out(kNow, [&](const Launch& launch) { numbers.push_back(launch.number); });
    EXPECT_EQ(any, !numbers.empty());
    return numbers;
  }

  FakeKernel kernel_;
  LaunchBook book_{fake_slots()};
};

using Numbers = std::vector<std::uint64_t>;

TEST_F(LaunchBookTest, LaunchesLeaveAStreamInOrder) {
  const Launch& first = add(stream_number(1));
  const Launch& second = add(stream_number(1));
  complete(second);
  EXPECT_EQ(take_out(), Numbers{});
  complete(first);
  EXPECT_EQ(take_out(), (Numbers{1, 2}));
  EXPECT_EQ(book_.outstanding(), 0u);
  EXPECT_TRUE(book_.active().empty());
  EXPECT_EQ(first.measured.complete_ns, kNow);
}

TEST_F(LaunchBookTest, StreamsDoNotWaitForEachOther) {
  add(stream_number(1));
  complete(add(stream_number(2)));
  EXPECT_EQ(take_out(), Numbers{2});
  EXPECT_EQ(book_.active(), std::vector<Stream*>{&book_.stream_of(stream_number(1))});
  EXPECT_EQ(book_.oldest()->number, 1u);
}

TEST_F(LaunchBookTest, ALaunchThatEndsBeforeItsCallIsOverAndKeptForItsThread) {
  Launch& launch = add(stream_number(1));
  launch.issued = false;
  add(stream_number(1));
  complete(launch);
  EXPECT_EQ(take_out(), Numbers{1});
  Numbers heads;
  book_.visit_heads([&](const Launch& head, const Stream&) { heads.push_back(head.number); });
  EXPECT_EQ(heads, Numbers{2});
  book_.give_back_left(true, kNow + 1'000'000'000);
  EXPECT_TRUE(book_.any_leaving());
  launch.issued = true;
  book_.give_back_left(true, kNow + 1'000'000'000);
  EXPECT_FALSE(book_.any_leaving());
}

TEST_F(LaunchBookTest, WhatTheDriverRefusesIsReadOnceItsCallIsOver) {
  Launch& launch = add(stream_number(1));
  launch.issued = false;
  launch.failed = true;
  EXPECT_EQ(take_out(), Numbers{});
  launch.issued = true;
  EXPECT_EQ(take_out(), Numbers{1});
}

TEST_F(LaunchBookTest, ProgressIsSeenAndWhetherAnythingRuns) {
  Stream& stream = book_.stream_of(stream_number(1));
  std::set<std::uint64_t> marks{0};
  const auto got_on = [&] { return marks.insert(book_.progress_of(stream).mark).second; };
  EXPECT_TRUE(got_on());
  EXPECT_FALSE(got_on());
  const Launch& first = add(stream_number(1));
  add(stream_number(1));
  EXPECT_TRUE(got_on());
  EXPECT_FALSE(book_.progress().runs);
  const std::uint64_t all = book_.progress().mark;
  gpuctl::ipc::store(book_.host(first).started, 1u);
  EXPECT_TRUE(got_on());
  EXPECT_TRUE(book_.progress_of(stream).runs);
  EXPECT_TRUE(book_.progress().runs);
  EXPECT_NE(book_.progress().mark, all);
  gpuctl::ipc::store(book_.host(first).progress, 3u);
  EXPECT_TRUE(got_on());
  EXPECT_FALSE(got_on());
  complete(first);
  EXPECT_TRUE(got_on());
  take_out();
  EXPECT_TRUE(got_on());
  EXPECT_FALSE(book_.progress().runs);
  book_.stop();
  book_.resume();
  EXPECT_TRUE(got_on()) << "launch blocks may be had again";
}

TEST_F(LaunchBookTest, ARefusedLaunchGivesItsLaunchBlockBackAtOnce) {
  Launch& launch = add(stream_number(1));
  const std::uint32_t slot = launch.slot;
  launch.failed = true;
  EXPECT_EQ(take_out(), Numbers{1});
  EXPECT_FALSE(book_.any_leaving());
  EXPECT_EQ(book_.take_slot(book_.stream_of(stream_number(1))), slot);
}

TEST_F(LaunchBookTest, ACompleteLaunchKeepsItsLaunchBlockUntilItsWorkersHaveLeft) {
  Launch& launch = add(stream_number(1));
  launch.launched = 3;
  complete(launch);
  take_out();
  book_.give_back_left(false, kNow);
  EXPECT_TRUE(book_.any_leaving());
  gpuctl::ipc::store(book_.host(launch).left, 3u);
  book_.give_back_left(false, kNow);
  EXPECT_FALSE(book_.any_leaving());
}

TEST_F(LaunchBookTest, WithNoGridRunningTheLastPostIsNotAwaitedForEver) {
  Launch& launch = add(stream_number(1));
  launch.launched = 3;
  complete(launch);
  take_out();
  constexpr std::uint64_t kLater = kNow + 1'000'000'000;
  book_.give_back_left(true, kNow + 1);
  EXPECT_TRUE(book_.any_leaving());
  book_.give_back_left(false, kLater);
  EXPECT_TRUE(book_.any_leaving());
  book_.give_back_left(true, kLater);
  EXPECT_FALSE(book_.any_leaving());
}

TEST_F(LaunchBookTest, NothingGetsALaunchBlockWhileLaunchesAreStopped) {
  const Stream& stream = book_.stream_of(stream_number(1));
  book_.stop();
  book_.stop();
  book_.resume();
  EXPECT_FALSE(book_.take_slot(stream));
  EXPECT_FALSE(book_.take_slots(stream, 2));
  book_.resume();
  EXPECT_TRUE(book_.take_slot(stream));
  EXPECT_EQ(book_.take_slots(stream, 2)->size(), 2u);
}

TEST_F(LaunchBookTest, OfAGraphLaunchOnlyTheLastKernelCountsInTheStream) {
  Stream& stream = book_.stream_of(stream_number(1));
  for (std::size_t i = 0; i < kMaxQueuedPerStream; ++i) {
    EXPECT_TRUE(book_.take_slot(stream)) << i;
    for (const bool counts : {false, true}) {
      auto launch = std::make_unique<Launch>();
      launch->instance = &kernel_.instance;
      launch->graph.counts = counts;
      book_.add(stream, std::move(launch));
    }
  }
  EXPECT_FALSE(book_.take_slot(stream));
}

TEST_F(LaunchBookTest, ADestroyedStreamStaysUntilItsLaunchesAreComplete) {
  const Launch& launch = add(stream_number(1));
  const Stream* before = book_.active().front();
  book_.stream_destroyed(stream_number(1));
  EXPECT_NE(&book_.stream_of(stream_number(1)), before);
  complete(launch);
  EXPECT_EQ(take_out(), Numbers{1});
}

TEST_F(LaunchBookTest, HeadsAreTheOldestAndThoseBesideItInItsGraphLaunch) {
  for (int i = 0; i < 4; ++i) {
    Launch& launch = add(stream_number(1));
    launch.graph.number = i < 3 ? 7 : 8;
    launch.graph.beside = true;
  }
  add(stream_number(2));
  add(stream_number(2));
  Numbers heads;
  book_.visit_heads([&](const Launch& head, const Stream&) { heads.push_back(head.number); });
  EXPECT_EQ(heads, (Numbers{1, 2, 3, 5}));
}

TEST_F(LaunchBookTest, AllHoldersAreToldToWork) {
  const Launch& head = add(stream_number(1));
  const Launch& behind = add(stream_number(1));
  book_.let_holders_work();
  EXPECT_EQ(book_.host(head).lone, 1u);
  EXPECT_EQ(book_.host(behind).lone, 1u);
}

}  // namespace
}  // namespace gpuslice
