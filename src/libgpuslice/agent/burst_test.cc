#include "libgpuslice/agent/burst.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <thread>
#include <vector>

namespace gpuslice::burst_test {
namespace {

using Seen = Burst::Seen;

CUstream stream(int number) {
  return reinterpret_cast<CUstream>(std::uintptr_t{0x1000} + static_cast<std::uintptr_t>(number) * 16);
}
const CUstream kA = stream(1), kB = stream(2);
constexpr std::uint64_t kUs = 1000;

/// A program on one device, whose streams are busy until they are said not to be.
struct Program {
  Burst burst;
  std::uint64_t now_ns = 5'000'000;
  std::set<StreamKey> busy;
  std::vector<StreamKey> asked;

  auto idle() {
    return [this](const StreamKey& key, auto&& there) {
      EXPECT_TRUE(there());
      asked.push_back(key);
      return !busy.contains(key);
    };
  }
  void launch(CUstream where, std::uint64_t takes_us = 1) {
    if (!burst.knows(where) && !burst.try_begin(where, now_ns))
      burst.issued(
          where, [this] { return now_ns; }, idle());
    busy.insert(stream_key(where));
    now_ns += takes_us * kUs;
  }
  /// In us.
  std::optional<std::uint64_t> wait(Seen seen, CUstream where = nullptr) {
    std::optional<std::uint64_t> us;
    const auto count = [&](std::uint64_t ns) { us = ns / kUs; };
    if (!burst.try_end(seen, where, now_ns, count)) burst.waited(seen, where, now_ns, idle(), count);
    return us;
  }
  std::optional<std::uint64_t> synchronize(CUstream where) {
    busy.erase(stream_key(where));
    return wait(Seen::kStream, where);
  }
};

TEST(Burst, IsFromTheFirstLaunchToTheWait) {
  Program program;
  EXPECT_FALSE(program.burst.open());
  EXPECT_EQ(program.wait(Seen::kAll), std::nullopt);
  for (int i = 0; i < 100; ++i) program.launch(kA, 3);
  EXPECT_TRUE(program.burst.open());
  EXPECT_EQ(program.synchronize(kA), 300u);
  EXPECT_FALSE(program.burst.open());
  EXPECT_TRUE(program.asked.empty()) << "the only stream was waited for";
  program.now_ns += 1'000'000;
  program.launch(kB, 7);
  EXPECT_EQ(program.wait(Seen::kAll), 7u);
}

TEST(Burst, NeedNotBeToldOfItsUsualStreamAgain) {
  Program program;
  program.launch(kA);
  EXPECT_FALSE(program.burst.knows(kA)) << "the next launches look for a pause";
  for (int i = 1; i < static_cast<int>(Burst::kLooks); ++i) program.launch(kA);
  EXPECT_TRUE(program.burst.knows(kA));
  EXPECT_FALSE(program.burst.knows(kB));
  program.synchronize(kA);
  EXPECT_FALSE(program.burst.knows(kA));
}

TEST(Burst, OfTwoStreamsEndsWithTheLast) {
  Program program;
  program.launch(kA, 10);
  program.launch(kB, 10);
  EXPECT_EQ(program.synchronize(kA), std::nullopt) << "the other one is busy";
  program.now_ns += 5 * kUs;
  EXPECT_EQ(program.synchronize(kB), 25u);
}

TEST(Burst, OfTwoStreamsEndsWithAWaitForOneWhereThatJoinedTheOther) {
  Program program;
  program.launch(kA, 10);
  program.launch(kB, 10);
  program.busy.clear();  // the second waited for the first by an event
  EXPECT_EQ(program.wait(Seen::kStream, kB), 20u);
}

TEST(Burst, EndsWithAnEventOnlyIfNothingCameBehindIt) {
  Program program;
  program.launch(kA, 10);
  EXPECT_EQ(program.wait(Seen::kSome), std::nullopt);
  program.busy.clear();
  EXPECT_EQ(program.wait(Seen::kSome), 10u);
}

TEST(Burst, BeginsAnewWhereWorkBehindTheLastWaitIsLongOver) {
  Program program;
  program.launch(kA);  // for which nobody waits
  program.busy.clear();
  program.now_ns += 50'000'000;
  program.launch(kA, 40);
  EXPECT_EQ(program.synchronize(kA), 40u);
}

TEST(Burst, HasTheCopyThatReadsItsResults) {
  Program program;
  program.launch(kA);
  program.busy.clear();
  program.now_ns += 50'000'000;
  program.burst.issued(
      kA, [&] { return program.now_ns; }, program.idle(), true);
  EXPECT_EQ(program.synchronize(kA), 50'001u);
}

TEST(Burst, GoesOnOverAPauseWhileItsWorkIsNotDone) {
  Program program;
  program.launch(kA);
  program.now_ns += 50'000'000;
  program.launch(kA, 40);
  EXPECT_EQ(program.synchronize(kA), 50'041u);
}

TEST(Burst, OfMoreStreamsThanItKnowsEndsWithAllOfThem) {
  Program program;
  for (int i = 0; i <= static_cast<int>(Burst::kMostStreams); ++i) program.launch(stream(i));
  program.busy.clear();
  EXPECT_EQ(program.wait(Seen::kSome), std::nullopt);
  EXPECT_EQ(program.wait(Seen::kAll), Burst::kMostStreams + 1);
  program.launch(kA);
  EXPECT_EQ(program.synchronize(kA), 1u) << "the next one knows its streams again";
}

TEST(Burst, SaysWhetherItsStreamsAreIdleAndGoesOn) {
  Program program;
  EXPECT_TRUE(program.burst.idle(program.idle()));
  program.launch(kA);
  program.launch(kB);
  EXPECT_FALSE(program.burst.idle(program.idle()));
  program.busy.erase(stream_key(kA));
  EXPECT_FALSE(program.burst.idle(program.idle()));
  program.busy.clear();
  EXPECT_TRUE(program.burst.idle(program.idle()));
  EXPECT_TRUE(program.burst.open());
  for (int i = 0; i <= static_cast<int>(Burst::kMostStreams); ++i) program.launch(stream(i));
  program.busy.clear();
  EXPECT_FALSE(program.burst.idle(program.idle())) << "there are streams that it does not know";
}

TEST(Burst, SaysWhetherAStreamThatItKnowsRuns) {
  Program program;
  const auto runs = [&](const StreamKey& key, auto&& there) { return there() && program.busy.contains(key); };
  EXPECT_FALSE(program.burst.any_runs(runs));
  program.launch(kA);
  program.launch(kB);
  EXPECT_TRUE(program.burst.any_runs(runs));
  program.busy.erase(stream_key(kA));
  EXPECT_TRUE(program.burst.any_runs(runs));
  for (int i = 3; i < 30; ++i) program.launch(stream(i));
  program.busy.clear();
  EXPECT_FALSE(program.burst.any_runs(runs)) << "of more streams than it knows these are not busy";
}

TEST(Burst, DoesNotAskAboutStreamsThatAreGone) {
  Program program;
  program.launch(kA);
  program.launch(kB);
  program.burst.destroyed(stream_key(kB));
  EXPECT_EQ(program.synchronize(kA), 2u);
  EXPECT_EQ(std::ranges::count(program.asked, stream_key(kB)), 0);
}

TEST(Burst, OfAContextThatIsGoneIsForgotten) {
  Program program;
  program.launch(kA);
  program.burst.forget();
  EXPECT_EQ(program.wait(Seen::kAll), std::nullopt);
}

TEST(Burst, TellsThePerThreadStreamsOfThreadsApart) {
  Program program;
  for (int i = 0; i < 10; ++i) program.launch(CU_STREAM_PER_THREAD);
  EXPECT_FALSE(program.burst.knows(CU_STREAM_PER_THREAD));
  std::thread([&] { program.launch(CU_STREAM_PER_THREAD); }).join();
  EXPECT_EQ(program.synchronize(CU_STREAM_PER_THREAD), std::nullopt) << "the other thread's goes on";
  program.busy.clear();
  EXPECT_EQ(program.wait(Seen::kAll), 11u);
}

/// Work that begins while the driver is asked belongs to the burst, so it goes on.
TEST(Burst, GoesOnWhereWorkIsPutIntoAnotherStreamMeanwhile) {
  Program program;
  program.launch(kA);
  program.busy.clear();
  const auto idle = [&](const StreamKey&, auto&&) {
    program.launch(kB);
    return true;
  };
  program.burst.waited(Seen::kSome, nullptr, program.now_ns, idle,
                       [](std::uint64_t) { ADD_FAILURE() << "it has ended"; });
  EXPECT_TRUE(program.burst.open());
}

/// A driver that is asked for a stream that is destroyed reads what is no longer there.
TEST(Burst, AsksForNoStreamThatIsDestroyedMeanwhile) {
  for (const bool all : {false, true}) {
    Program program;
    program.launch(kA);
    program.launch(kB);
    std::vector<StreamKey> asked;
    const auto idle = [&](const StreamKey& key, auto&& there) {
      if (!there()) return false;
      asked.push_back(key);
      all ? program.burst.forget() : program.burst.destroyed(stream_key(kB));
      return true;
    };
    program.burst.waited(Seen::kSome, nullptr, program.now_ns, idle,
                         [](std::uint64_t) { ADD_FAILURE() << "it has ended"; });
    EXPECT_EQ(asked, std::vector{stream_key(kA)});
    EXPECT_EQ(program.burst.open(), !all);
  }
}

/// count() is called by one thread at a time: it writes without an atomic operation, and none of it is lost.
TEST(Burst, IsCountedOnceByThreadsThatWaitAtOnce) {
  Burst burst;
  std::atomic<std::uint64_t> clock{1}, calls{0};
  std::uint64_t ended = 0;
  const auto idle = [](const StreamKey&, auto&&) { return true; };
  const auto count = [&](std::uint64_t) {
    ++ended;
    ++calls;
  };
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20'000; ++i) {
        if (i % 3 == 0 || !burst.try_begin(stream(t), clock.fetch_add(1)))
          burst.issued(
              stream(t), [&] { return clock.fetch_add(1); }, idle);
        const Seen seen = t % 2 == 0 ? Seen::kSome : Seen::kStream;
        if (i % 5 == 0 || !burst.try_end(seen, stream(t), clock.fetch_add(1), count))
          burst.waited(seen, stream(t), clock.fetch_add(1), idle, count);
        if (i % 16 == 0) burst.counting([&] { count(0); });
      }
    });
  }
  threads.clear();
  EXPECT_EQ(ended, calls);
  EXPECT_GT(ended, 4 * 20'000u / 16);
  burst.waited(Seen::kAll, nullptr, clock, idle, count);
  EXPECT_FALSE(burst.open());
  const std::uint64_t all = ended;
  burst.waited(Seen::kAll, nullptr, clock, idle, count);
  EXPECT_EQ(ended, all);
}

}  // namespace
}  // namespace gpuslice::burst_test
