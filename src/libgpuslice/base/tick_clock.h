// A clock for lengths of time on the way of a launch: the processor's counter, which takes 10 ns where clock_gettime
// takes 24. Only where the kernel's own clock goes by that counter, so that it runs evenly and alike on all processors.
// Elsewhere it is CLOCK_MONOTONIC. Its times are in ns, from an instant of its own. Any thread.
#pragma once

#include <cstdint>

#include "libgpuslice/base/clock.h"
#include "libgpuslice/base/launch_words.h"

namespace gpuslice {

/// The counter; 0: there is none for this processor.
inline std::uint64_t processor_ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return 0;
#endif
}

class TickClock {
 public:
  /// Looks whether the counter can be used, and from now on how fast it is. Once, before the first now().
  static void begin();

  static std::uint64_t now_ns() {
    const std::uint64_t now_ns = counter_ns();
    return now_ns != 0 ? now_ns : first_ns();
  }
  /// The same, without a call; 0: it takes one.
  static std::uint64_t counter_ns() {
    const std::uint64_t ns_per_tick = g_launch_words.ns_per_tick.load(std::memory_order_relaxed);
    return ns_per_tick == 0 ? 0 : scaled(processor_ticks(), ns_per_tick);
  }

  /// `ns_per_tick` in units of 2^-32.
  static std::uint64_t scaled(std::uint64_t ticks, std::uint64_t ns_per_tick) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((Wide{ticks} * ns_per_tick) >> 32);
  }

  /// Whether a clock of the kernel, as named in clocksource0/current_clocksource, goes by the counter.
  static bool goes_by_counter(const char* clock_source);

 private:
  static std::uint64_t first_ns();
};

}  // namespace gpuslice
