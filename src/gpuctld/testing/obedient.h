// For tests of the scheduler over time: programs that obey at once, and what they had.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon {

/// Nobody is silent, and everybody has to give SMs back.
inline DaemonOptions all_obey() {
  return {.always_preemptible = true, .lease = std::chrono::hours(24), .reserve_by_parts = false};
}

struct Obedient {
  FakeProgram program;
  std::uint32_t wants = 0;
  double had = 0;           ///< SMs, over the milliseconds
  int waited = 0;           ///< in ms, by now
  int longest_wait = 0;     ///< in ms
  std::uint32_t epoch = 0;  ///< when the world was last told to forget

  std::uint32_t uses() const { return std::min(program.granted(), wants); }
};

struct World {
  explicit World(const sched::SliceTree& tree, std::uint32_t sms, int devices = 1)
      : scheduler(gpus(sms, devices), tree, all_obey()) {}

  Obedient& add(const std::string& slice, std::uint32_t wants, std::vector<int> devices = {0}) {
    Obedient& added =
        programs.emplace_back(FakeProgram(scheduler.add(FakeProgram::make(slice, std::move(devices)), now)));
    want(added, wants);
    return added;
  }
  void want(Obedient& program, std::uint32_t sms) {
    program.wants = sms;
    program.program.demand(sms);
    if (sms > 0) program.program.launch();
  }
  /// Every millisecond all programs obey, `look` looks, and the scheduler is called.
  template <class Look>
  void pass(int ms, Look look) {
    for (; ms > 0; --ms) {
      for (Obedient& one : programs) {
        one.program.apply();
        one.had += one.uses();
        one.waited = one.wants > 0 && one.uses() == 0 ? one.waited + 1 : 0;
        one.longest_wait = std::max(one.longest_wait, one.waited);
      }
      look();
      scheduler.update(now += 1'000'000);
    }
  }
  void pass(int ms) {
    pass(ms, [] {});
  }
  void forget() {
    for (Obedient& one : programs) one.had = 0, one.waited = one.longest_wait = 0, one.epoch = one.program.epoch();
  }

  static std::vector<Gpu> gpus(std::uint32_t sms, int count) {
    std::vector<Gpu> all;
    for (int index = 0; index < count; ++index) all.push_back(gpu(sms, index));
    return all;
  }

  std::uint64_t now = 1;
  Scheduler scheduler;
  std::list<Obedient> programs;
};

}  // namespace gpuctl::daemon
