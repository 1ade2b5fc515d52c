// What the C++ programs beside this file share; rounds.py says what they are told and what they print.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <vector>

/// Seconds since this process began, by the clock ticks that the kernel keeps.
inline double since_start_s() {
  char text[2048] = {};
  std::FILE* file = std::fopen("/proc/self/stat", "r");
  if (!file) return 0;
  [[maybe_unused]] const std::size_t got = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  const char* at = std::strrchr(text, ')');
  for (int blanks = 0; at && blanks < 20; ++blanks) at = std::strchr(at + 1, ' ');
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double began = at ? std::atof(at) / static_cast<double>(sysconf(_SC_CLK_TCK)) : 0;
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9 - began;
}

struct RoundsProgram {
  const char* name;
  std::function<void()> round;                           ///< queues a round's work
  std::function<void()> wait;                            ///< for the GPU
  std::function<std::vector<unsigned char>()> contents;  ///< all results
};

/// Runs as `wanted` says, a number or "-".
inline void run_rounds(const RoundsProgram& program, const char* wanted) {
  using Seconds = std::chrono::duration<double>;
  long rounds = 0;
  double loop_s = 0;
  const auto run = [&](long count) {
    const auto begin = std::chrono::steady_clock::now();
    for (long i = 0; i < count; ++i) program.round();
    program.wait();
    rounds += count;
    return Seconds(std::chrono::steady_clock::now() - begin).count();
  };
  run(1);
  const double first_s = since_start_s();
  if (std::strcmp(wanted, "-") == 0) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    std::printf("ready %lld\n", static_cast<long long>(now.tv_sec) * 1'000'000'000 + now.tv_nsec);
    std::fflush(stdout);
    char line[64];
    while (std::fgets(line, sizeof line, stdin)) {
      const long count = std::atol(line);
      const double seconds = run(count);
      loop_s += seconds;
      std::printf("ran %ld in %.6f s\n", count, seconds);
      std::fflush(stdout);
    }
  } else {
    loop_s = run(std::atol(wanted));
  }
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char byte : program.contents()) hash = (hash ^ byte) * 0x100000001b3;
  std::printf("%s: %ld rounds, hash %016llx, loop %.6f s, first result %.6f s after its start\n", program.name, rounds,
              static_cast<unsigned long long>(hash), loop_s, first_s);
}
