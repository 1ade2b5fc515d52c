#include "libgpuslice/base/tick_clock.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace gpuslice::tick_clock_test {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

/// Both clocks, read in turn until nothing came between them.
struct Instant {
  Instant() {
    std::uint64_t before_ns, after_ns;
    do {
      before_ns = monotonic_ns();
      of_ticks_ns = TickClock::now_ns();
      after_ns = monotonic_ns();
    } while (after_ns - before_ns > 20'000);
    ns = after_ns;
  }
  std::uint64_t ns, of_ticks_ns;
};

TEST(TickClock, GoesAsTheKernelsDoes) {
  TickClock::begin();
  const Instant begin;
  Instant end;
  while (end.ns - begin.ns < 50 * kMs) end = Instant();
  const double length = static_cast<double>(end.ns - begin.ns);
  EXPECT_NEAR(static_cast<double>(end.of_ticks_ns - begin.of_ticks_ns) / length, 1, 0.01);
}

TEST(TickClock, SaysTheSameToAllThreads) {
  TickClock::begin();
  std::uint64_t latest_ns = TickClock::now_ns();
  for (int i = 0; i < 50; ++i) {
    std::uint64_t its_ns = 0;
    std::thread([&] { its_ns = TickClock::now_ns(); }).join();
    EXPECT_GE(its_ns, latest_ns);
    latest_ns = TickClock::now_ns();
    EXPECT_GE(latest_ns, its_ns);
  }
}

TEST(TickClock, IsTheCounterOnlyWhereTheKernelGoesByIt) {
  for (const char* slow : {"", "hpet\n", "acpi_pm\n", "jiffies\n", "xen\n", "tsc-early\n"})
    EXPECT_FALSE(TickClock::goes_by_counter(slow)) << slow;
#if defined(__x86_64__)
  EXPECT_TRUE(TickClock::goes_by_counter("tsc\n"));
  EXPECT_TRUE(TickClock::goes_by_counter("kvm-clock"));
#elif defined(__aarch64__)
  EXPECT_TRUE(TickClock::goes_by_counter("arch_sys_counter\n"));
#endif
}

TEST(TickClock, DoesNotOverflowInYears) {
  constexpr std::uint64_t kTicksPerS = 3'000'000'000, kYear = 365ull * 86'400;
  const std::uint64_t ns_per_tick = (std::uint64_t{1} << 32) / 3;
  EXPECT_NEAR(static_cast<double>(TickClock::scaled(20 * kYear * kTicksPerS, ns_per_tick)) / 1e9, 20.0 * kYear, 1);
}

}  // namespace
}  // namespace gpuslice::tick_clock_test
