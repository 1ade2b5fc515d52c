#include "gpuctld/accounts/work_meter.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace gpuctl::daemon::work_meter_test {
namespace {

constexpr std::uint64_t kMs = 1'000'000, kS = 1'000 * kMs;

/// A program and the daemon that looks at it.
struct Program {
  WorkMeter meter;
  WorkMeter::Counted page, before;
  std::uint64_t now_ns = 7 * kS;

  Program() { look(0); }
  void burst(std::uint64_t ns) { page.bursts += 1, page.burst_ns += ns; }
  /// So many SMs at work for so long, until now; 0: none.
  void look(double sms, std::uint64_t ns = 0, bool waits = false) {
    const WorkMeter::Seen seen{.works = sms > 0, .waits = waits, .sms = sms > 0 ? sms : 8};
    if (ns > 0) meter.look(before, seen, now_ns);  // from then on
    meter.look(before = page, seen, now_ns += ns);
  }
};

TEST(WorkMeter, CountsABurstWithTheMeanOfTheSmsThatItHad) {
  Program program;
  program.look(8, 30 * kMs);
  program.look(2, 60 * kMs, true);
  EXPECT_EQ(program.meter.used().work_s, 0) << "it has not ended";
  program.burst(100 * kMs);
  program.look(0, 10 * kMs);
  EXPECT_NEAR(program.meter.used().work_s, 0.1, 1e-9);
  EXPECT_NEAR(program.meter.used().sm_s, 0.1 * (30 * 8 + 60 * 2) / 90, 1e-9);
  EXPECT_NEAR(program.meter.used().waited_s, 0.1 * 60 / 90, 1e-9);
  EXPECT_EQ(program.meter.used().bursts, 1);
}

TEST(WorkMeter, CountsBurstsThatNobodySawByWhatTheProgramWouldHave) {
  Program program;
  program.burst(1 * kMs), program.burst(2 * kMs);
  program.look(0, 250 * kMs);
  EXPECT_NEAR(program.meter.used().work_s, 0.003, 1e-9);
  EXPECT_NEAR(program.meter.used().sm_s, 0.003 * 8, 1e-9);
  EXPECT_EQ(program.meter.used().bursts, 2);
}

TEST(WorkMeter, CountsALongBurstWhileItGoesOnAndTheRestAtItsEnd) {
  Program program;
  for (int i = 0; i < 25; ++i) program.look(4, kS);
  EXPECT_NEAR(program.meter.used().work_s, 22, 1e-9) << "the second time after eleven seconds";
  program.burst(25 * kS);
  program.look(4);
  EXPECT_NEAR(program.meter.used().work_s, 25, 1e-9);
  EXPECT_NEAR(program.meter.used().sm_s, 100, 1e-9);
}

TEST(WorkMeter, CountsAtTheEndWhatWasSeenOfABurst) {
  Program killed, idle;
  killed.look(4, 3 * kS);
  killed.meter.settle(true);
  EXPECT_NEAR(killed.meter.used().sm_s, 12, 1e-9);
  idle.look(4, 3 * kS);  // the page's demand goes on after the last burst
  idle.meter.settle(false);
  EXPECT_EQ(idle.meter.used().work_s, 0);
}

TEST(WorkMeter, CountsOfABurstThatBeganBeforeTheDaemonNoMoreThanSinceThen) {
  Program program;
  program.look(8, 2 * kS);
  program.burst(3600 * kS);
  program.look(0);
  EXPECT_NEAR(program.meter.used().work_s, 2, 1e-9);
}

TEST(WorkMeter, IsDueAtOnceAfterWorkAndLaterAfterNone) {
  WorkMeter meter;
  EXPECT_TRUE(meter.due(1)) << "nobody has looked yet";
  meter.look({}, {.works = true}, 1 * kS);
  EXPECT_TRUE(meter.due(1 * kS + kMs));
  meter.look({}, {}, 1 * kS + kMs);
  EXPECT_FALSE(meter.due(1 * kS + 200 * kMs));
  EXPECT_TRUE(meter.due(1 * kS + 201 * kMs));
}

TEST(WorkMeter, CountsMemoryByTheTimeThatItIsHeld) {
  WorkMeter meter;
  meter.look({}, {.memory = 1 << 20}, 1 * kS);
  meter.look({}, {.memory = 0}, 4 * kS);
  meter.look({}, {.memory = 5 << 20}, 9 * kS);
  EXPECT_EQ(meter.used().memory_byte_s, 3.0 * (1 << 20));
}

TEST(WorkMeter, BelievesNoPageThatSaysMoreThanCanBe) {
  Program liar;
  liar.page = {.bursts = ~0ull, .burst_ns = ~0ull, .launches = ~0ull >> 1, .evictions = 1ull << 62};
  liar.look(0, kMs);
  const Amounts used = liar.meter.take();
  EXPECT_LE(used.work_s, 0.001 + 1e-9);
  for (const std::int64_t count : {used.bursts, used.launches, used.evictions}) {
    EXPECT_GT(count, 0);
    EXPECT_LT(count, 100'000);
  }
  liar.page = {};  // counters that fall
  liar.look(0, kMs);
  EXPECT_EQ(liar.meter.used().launches + liar.meter.used().bursts, 0);
}

/// Whatever happens and whenever somebody looks and takes: nothing is lost, and nothing counts twice.
TEST(WorkMeter, KeepsTheSumsWhateverHappens) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    Program program;
    Amounts taken;
    double work_s = 0, open_s = 0;  // of bursts that have ended; seen of the one that goes on
    std::int64_t bursts = 0;
    const std::uint64_t began_ns = program.now_ns;
    for (int step = 0; step < 300; ++step) {
      const std::uint64_t ns = random.below(random.below(20) == 0 ? 15 * kS : 30 * kMs);
      const bool works = random.below(3) > 0;
      open_s += works ? static_cast<double>(ns) / 1e9 : 0;
      if (works && random.below(2) == 0) {
        program.burst(static_cast<std::uint64_t>(open_s * 1e9 + 0.5));
        work_s += open_s, open_s = 0, ++bursts;
      }
      program.look(works ? 8 : 0, ns);
      if (random.below(4) == 0) taken += program.meter.take();
    }
    program.meter.settle(true);
    taken += program.meter.take();
    EXPECT_NEAR(taken.work_s, work_s + open_s, 1e-6) << "seed " << seed;
    EXPECT_NEAR(taken.sm_s, 8 * (work_s + open_s), 1e-5) << "seed " << seed;
    EXPECT_EQ(taken.bursts, bursts);
    EXPECT_LE(taken.work_s, static_cast<double>(program.now_ns - began_ns) / 1e9 + 1e-9);
  }
}

}  // namespace
}  // namespace gpuctl::daemon::work_meter_test
