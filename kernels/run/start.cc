#include "kernels/run/start.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <string>

#include "kernels/run/driver.h"
#include "kernels/timing/clock.h"

namespace gpuctl::bench {
namespace {

constexpr std::int64_t kLongestPauseNs = 100'000'000;  // so that a stop request is seen

std::int64_t read_time() {
  std::fputs("ready\n", stderr);
  std::string line;
  std::getline(std::cin, line);
  std::int64_t at_ns = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), at_ns);
  if (error != std::errc() || end != line.data() + line.size() || at_ns <= 0) {
    throw Failure("--start-on-input: '" + line + "' is not a time in nanoseconds");
  }
  return at_ns;
}

}  // namespace

std::int64_t wait_for(const Start& start, const std::atomic<bool>& stop) {
  const std::int64_t at_ns = start.on_input ? read_time() : start.at_ns;
  if (at_ns == 0) return now_ns();
  while (now_ns() < at_ns && !stop) sleep_until_ns(std::min(at_ns, now_ns() + kLongestPauseNs));
  return at_ns;
}

}  // namespace gpuctl::bench
