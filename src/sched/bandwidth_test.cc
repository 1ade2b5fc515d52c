#include "sched/bandwidth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "sched/apply_change.h"
#include "sched/policy.h"

namespace gpuctl::sched::bandwidth_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr Quota kForty{.time = milliseconds{40}, .period = milliseconds{100}, .burst = {}};

TEST(Bandwidth, IsUsedUpAndComesBackWithTheNextPeriod) {
  Bandwidth bandwidth;
  bandwidth.set(kForty, milliseconds{1000});
  bandwidth.use(milliseconds{30}, milliseconds{1030});
  EXPECT_FALSE(bandwidth.step(milliseconds{1030}));
  EXPECT_EQ(bandwidth.left(), milliseconds{10});
  EXPECT_NEAR(bandwidth.next(0.5)->count(), 1'050'000'000, 10) << "with half of the GPU it lasts twice as long";
  EXPECT_FALSE(bandwidth.next(0));
  bandwidth.use(milliseconds{10}, milliseconds{1040});
  EXPECT_TRUE(bandwidth.step(milliseconds{1040}));
  EXPECT_TRUE(bandwidth.throttled());
  EXPECT_EQ(bandwidth.next(1), milliseconds{1100});
  EXPECT_FALSE(bandwidth.step(milliseconds{1099}));
  EXPECT_TRUE(bandwidth.step(milliseconds{1100}));
  EXPECT_FALSE(bandwidth.throttled());
  EXPECT_EQ(bandwidth.seen(milliseconds{1200}).times, 1);
  EXPECT_EQ(bandwidth.seen(milliseconds{1200}).time, milliseconds{60});
}

TEST(Bandwidth, WhatIsLeftIsKeptUpToTheBurst) {
  Bandwidth bandwidth;
  bandwidth.set({milliseconds{40}, milliseconds{100}, milliseconds{20}}, milliseconds{0});
  bandwidth.step(milliseconds{950});
  EXPECT_EQ(bandwidth.left(), milliseconds{60});
  bandwidth.use(milliseconds{50}, milliseconds{999});
  bandwidth.step(milliseconds{1000});
  EXPECT_EQ(bandwidth.left(), milliseconds{50});
}

TEST(Bandwidth, ADebtIsPaidByThePeriodsThatFollow) {
  Bandwidth bandwidth;
  bandwidth.set(kForty, milliseconds{0});
  bandwidth.use(milliseconds{40 + 90}, milliseconds{90});  // a kernel that nobody could stop
  bandwidth.step(milliseconds{90});
  EXPECT_EQ(bandwidth.next(0), milliseconds{300});
  for (int ms = 100; ms < 300; ms += 10) EXPECT_FALSE(bandwidth.step(milliseconds{ms})) << ms;
  EXPECT_TRUE(bandwidth.step(milliseconds{300}));
  EXPECT_EQ(bandwidth.left(), milliseconds{30});
}

/// What was counted too often comes back. That does not let it go on in the period: it would go and stop all the time.
TEST(Bandwidth, WhatIsTakenBackCountsFromTheNextPeriodOn) {
  Bandwidth bandwidth;
  bandwidth.set(kForty, milliseconds{0});
  bandwidth.use(milliseconds{50}, milliseconds{50});
  bandwidth.step(milliseconds{50});
  bandwidth.use(-milliseconds{20}, milliseconds{60});
  EXPECT_FALSE(bandwidth.step(milliseconds{60}));
  EXPECT_TRUE(bandwidth.throttled());
  EXPECT_TRUE(bandwidth.step(milliseconds{100}));
  EXPECT_EQ(bandwidth.left(), milliseconds{40});
}

TEST(Bandwidth, AnotherQuotaBeginsAPeriodAndForgivesNothing) {
  Bandwidth bandwidth;
  bandwidth.set(kForty, milliseconds{0});
  bandwidth.use(milliseconds{70}, milliseconds{70});
  bandwidth.step(milliseconds{70});
  bandwidth.set(kForty, milliseconds{75});
  EXPECT_TRUE(bandwidth.throttled()) << "it is the same";
  bandwidth.set({milliseconds{10}, milliseconds{50}, {}}, milliseconds{80});
  EXPECT_TRUE(bandwidth.throttled());
  EXPECT_EQ(bandwidth.left(), -milliseconds{20});
  bandwidth.set({milliseconds{50}, milliseconds{100}, {}}, milliseconds{90});
  EXPECT_FALSE(bandwidth.throttled());
  EXPECT_EQ(bandwidth.left(), milliseconds{30});
  EXPECT_EQ(bandwidth.seen(milliseconds{200}).time, milliseconds{20});
}

TEST(Bandwidth, AClockThatStandsOrGoesBackGivesNothing) {
  Bandwidth bandwidth;
  bandwidth.set(kForty, milliseconds{1000});
  bandwidth.use(milliseconds{40}, milliseconds{1050});
  bandwidth.step(milliseconds{1050});
  EXPECT_FALSE(bandwidth.step(milliseconds{900}));
  EXPECT_TRUE(bandwidth.throttled());
  EXPECT_EQ(bandwidth.seen(milliseconds{900}).time.count(), 0);
}

TEST(Bandwidth, ABurstIsNoMoreThanTheQuota) {
  const auto wrong = [](const Slice& slice, const SliceChange& change) {
    const auto result = apply_change(slice, change);
    return result ? std::string() : result.error().message();
  };
  Slice slice;
  slice.policy = &policies().front();
  EXPECT_EQ(wrong(slice, {.quota = "20ms/100ms", .burst = "30ms"}),
            "burst: 30ms is more than the time of the quota 20ms/100ms");
  EXPECT_EQ(wrong(slice, {.burst = "30ms"}), "") << "it waits for a quota";
  slice.quota = "40ms/100ms", slice.burst = "30ms";
  EXPECT_EQ(wrong(slice, {.quota = "20ms/100ms"}), "quota: a burst of 30ms is more than the time of 20ms/100ms");
  EXPECT_EQ(wrong(slice, {.quota = "none"}), "");
  EXPECT_EQ(wrong(slice, {.quota = "40ms/100ms,1:20ms/100ms"}),
            "quota: a burst of 30ms is more than the time of 20ms/100ms");
  EXPECT_EQ(wrong(slice, {.burst = "30ms,GPU-1b:50ms"}), "burst: 50ms is more than the time of the quota 40ms/100ms");
  EXPECT_EQ(wrong(slice, {.quota = "40ms/100ms,1:20ms/100ms", .burst = "30ms,1:none"}), "");
  EXPECT_EQ(wrong(slice, {.quota = "40ms"}), "quota: must be " + std::string(kQuotaForm));
}

/// A slice, and one below it, whose programs want the GPU at random, are looked at at random and run on when they are
/// throttled.
struct Use {
  static constexpr nanoseconds kLook = milliseconds{6}, kKernel = milliseconds{30};

  std::vector<Bandwidth> path;    ///< each bounds the one use
  std::vector<nanoseconds> at;    ///< when the GPU was used ...
  std::vector<nanoseconds> used;  ///< ... for how long

  void go(Random& random, nanoseconds from, nanoseconds to, bool greedy) {
    nanoseconds now = from, kernel{};
    while (now < to) {
      nanoseconds step(1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(kLook.count()))));
      bool throttled = false;
      for (const Bandwidth& one : path) {
        throttled |= one.throttled();
        if (const auto next = one.next(1); next && *next > now) step = std::min(step, *next - now);
      }
      if (!throttled && kernel.count() == 0 && (greedy || random.below(3) > 0))
        kernel = nanoseconds(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(kKernel.count()))));
      const nanoseconds runs = std::min(kernel, step);
      kernel -= runs;
      at.push_back(now);
      used.push_back(runs);
      now += step;
      for (Bandwidth& one : path) {
        one.use(runs, now);
        one.step(now);
      }
    }
  }

  nanoseconds used_in(nanoseconds from, nanoseconds to) const {
    nanoseconds sum{};
    for (std::size_t i = 0; i < at.size(); ++i)
      if (at[i] >= from && at[i] + used[i] <= to) sum += used[i];
    return sum;
  }

  /// Over any whole number of periods that lie in [from, to).
  void expect_kept(const Quota& quota, nanoseconds from, nanoseconds to) const {
    const nanoseconds first = from + (quota.period - from % quota.period) % quota.period;
    for (nanoseconds begin = first; begin < to; begin += quota.period)
      for (std::int64_t n = 1; begin + n * quota.period <= to; n += 1 + n / 4)
        EXPECT_LE(used_in(begin, begin + n * quota.period), n * quota.time + quota.burst + kLook + kKernel)
            << n << " periods from " << begin.count();
  }
};

Quota any_quota(Random& random) {
  Quota quota;
  quota.period = milliseconds{10 + static_cast<std::int64_t>(random.below(100))};
  quota.time = quota.period * (1 + static_cast<std::int64_t>(random.below(9))) / 10;
  if (random.below(2) == 0) quota.burst = quota.time / (1 + static_cast<std::int64_t>(random.below(4)));
  return quota;
}

TEST(Bandwidth, NeverMoreThanQuotaAndBurstButForWhatCannotStop) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Quota outer = any_quota(random), inner = any_quota(random);
    Use run;
    run.path.resize(2);
    run.path[0].set(outer, nanoseconds{});
    run.path[1].set(inner, nanoseconds{});
    run.go(random, nanoseconds{}, milliseconds{1500}, seed % 2 == 0);
    run.expect_kept(outer, nanoseconds{}, milliseconds{1500});
    run.expect_kept(inner, nanoseconds{}, milliseconds{1500});
    const Quota changed = any_quota(random);
    run.path[1].set(changed, milliseconds{1600});
    run.go(random, milliseconds{1600}, milliseconds{3000}, true);
    run.expect_kept(outer, nanoseconds{}, milliseconds{3000});
    run.expect_kept(changed, milliseconds{1600}, milliseconds{3000});
  }
}

TEST(Bandwidth, WhoAlwaysWantsMoreGetsAllOfIt) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Quota quota = any_quota(random);
    Use run;
    run.path.resize(1);
    run.path[0].set(quota, nanoseconds{});
    run.go(random, nanoseconds{}, 40 * quota.period, true);
    EXPECT_GE(run.used_in(nanoseconds{}, 40 * quota.period), 39 * quota.time - Use::kLook);
  }
}

}  // namespace
}  // namespace gpuctl::sched::bandwidth_test
