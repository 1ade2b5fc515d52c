#include "libgpuslice/base/tick_clock.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string_view>

namespace gpuslice {

namespace {

/// Both clocks at one instant.
struct Both {
  std::uint64_t ticks = 0, ns = 0, apart_ns = UINT64_MAX;
};

/// The best of a few: a thread can be stopped between two clocks.
Both look_at_both() {
  Both best;
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t before_ns = monotonic_ns();
    const std::uint64_t ticks = processor_ticks();
    const std::uint64_t apart_ns = monotonic_ns() - before_ns;
    if (apart_ns < best.apart_ns) best = {.ticks = ticks, .ns = before_ns + apart_ns / 2, .apart_ns = apart_ns};
  }
  return best;
}

/// Over that time the two are compared. Both are read to some 50 ns, so it is right to 0.1 %.
constexpr std::uint64_t kEnoughNs = 100'000;

Both g_begun;
std::atomic<bool> g_usable{false};

}  // namespace

bool TickClock::goes_by_counter(const char* clock_source) {
  const std::string_view name = std::string_view(clock_source).substr(0, std::string_view(clock_source).find('\n'));
#if defined(__x86_64__)
  return name == "tsc" || name == "kvm-clock" || name == "hyperv_clocksource_tsc_page";
#elif defined(__aarch64__)
  return name == "arch_sys_counter";
#else
  static_cast<void>(name);
  return false;
#endif
}

void TickClock::begin() {
  if (g_usable.load(std::memory_order_acquire)) return;
  char name[64]{};
  const int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t length = read(fd, name, sizeof(name) - 1);
  close(fd);
  if (length <= 0 || !goes_by_counter(name)) return;
  g_begun = look_at_both();
  g_usable.store(true, std::memory_order_release);
}

[[gnu::noinline]] std::uint64_t TickClock::first_ns() {
  if (!g_usable.load(std::memory_order_acquire)) return monotonic_ns();
  Both now = look_at_both();
  while (now.ns - g_begun.ns < kEnoughNs) now = look_at_both();
  __extension__ using Wide = unsigned __int128;
  const Wide ns = now.ns - g_begun.ns, ticks = std::max<std::uint64_t>(now.ticks - g_begun.ticks, 1);
  std::uint64_t none = 0;
  const auto ns_per_tick = static_cast<std::uint64_t>((ns << 32) / ticks);
  g_launch_words.ns_per_tick.compare_exchange_strong(none, std::max<std::uint64_t>(ns_per_tick, 1));
  return counter_ns();
}

}  // namespace gpuslice
