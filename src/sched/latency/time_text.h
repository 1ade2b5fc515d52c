// Times for people.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

namespace gpuctl::sched {

/// Two digits at least: "350 us", "4.1 ms", "41 ms".
inline std::string time_text(std::chrono::nanoseconds time) {
  double value = static_cast<double>(time.count()) / 1e3;
  const char* unit = "us";
  if (value >= 1000) value /= 1000, unit = "ms";
  if (value >= 1000) value /= 1000, unit = "s";
  char text[32];
  std::snprintf(text, sizeof text, value < 10 && *unit != 'u' ? "%.2g %s" : "%.0f %s", value, unit);
  return text;
}

}  // namespace gpuctl::sched
