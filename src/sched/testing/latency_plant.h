// For tests of what keeps targets of latency: bursts of a slice beside others, by the rungs of the dials.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "base/random.h"
#include "sched/latency/steer.h"

namespace gpuctl::sched::plant {

using Nanoseconds = std::chrono::nanoseconds;
using Seconds = std::chrono::duration<double>;

inline Nanoseconds ms(double value) {
  return Nanoseconds(std::llround(value * 1e6));
}
inline Nanoseconds seconds(double value) {
  return Nanoseconds(std::llround(value * 1e9));
}

inline int rung(const Rungs& rungs, Dial dial) {
  return rungs[static_cast<std::size_t>(dial)];
}
inline Rungs rungs(int level, int turns, int kept) {
  return {level, turns, kept};
}

/// How long a burst takes that ends at an instant, while the dials are so; in ms.
using Takes = std::function<double(const Rungs& rungs, double at_s, Random& random)>;

/// About `mean`, with a deviation of the logarithm.
inline double about(double mean, double deviation, Random& random) {
  return mean * std::exp(deviation * random.normal());
}

/// Others hold the GPU for their turns.
inline Takes by_turns(double alone_ms, double deviation = 0.1) {
  return [=](const Rungs& rungs, double, Random& random) {
    const double turn_ms =
        rung(rungs, Dial::turns) == 0 ? 8 : static_cast<double>(turn_at(rung(rungs, Dial::turns)).count()) / 1000;
    return about(alone_ms, deviation, random) + 4 * turn_ms * random.uniform();
  };
}

/// Blocks of others are in the way, less so from a level above them on, and on few SMs it is slow.
inline Takes by_blocks(double alone_ms, double block_ms, int needs_rungs, double deviation = 0.1) {
  return [=](const Rungs& rungs, double, Random& random) {
    const int kept = std::min(rung(rungs, Dial::kept), needs_rungs);
    const double blocked = block_ms * (needs_rungs - kept) / needs_rungs * (rung(rungs, Dial::level) > 0 ? 1 : 5);
    return about(alone_ms, deviation, random) + blocked * random.uniform();
  };
}

/// One program fills all SMs, and its kernels are slow on few: `best_rung` is enough, and each more makes it worse.
inline Takes by_a_bowl(double alone_ms, int best_rung, double deviation = 0.1) {
  return [=](const Rungs& rungs, double, Random& random) {
    const int off = rung(rungs, Dial::kept) - best_rung;
    return about(alone_ms * (off < 0 ? 1 - 4 * off : 1 + 0.5 * off), deviation, random);
  };
}

struct Beside {
  double per_s = 100, step_s = 0.1, delay_s = 0;
  bool says_delay = false;  ///< others are seen to be leaving until then; they come back at once
  Rungs last{1, kTurnRungs, 14};
  double now_s = 1000;
  bool quiet = false, active = true;
  bool absent = false, no_others = false;  ///< then no dial does anything
  bool can_pause = false;
  double becomes_still_s = 0.05;  ///< once others are paused; then bursts take `alone`
  Takes alone{};
  double paused_s = 0, paused_since_s = -1;
  std::uint64_t who = 1;
  double launches_per_s = 1000;
  double costs_turn = 0.03;              ///< of others' launches, each rung
  std::uint64_t bursts = 0, longer = 0;  ///< since clear()
  int changes = 0;
  double began_s = 1000;
  Rungs rungs_sum{};
  std::deque<std::pair<double, Rungs>> set{};  ///< when which rungs were set

  void clear() { bursts = longer = 0, changes = 0, began_s = now_s; }
  double longer_part() const { return bursts == 0 ? 0 : static_cast<double>(longer) / static_cast<double>(bursts); }
  double changes_a_minute() const { return changes / ((now_s - began_s) / 60); }

  Rungs effective(double at_s) {
    const auto comes_back = [&] {
      return says_delay && rung(set[1].second, Dial::kept) < rung(set[0].second, Dial::kept);
    };
    while (set.size() > 1 && (set[1].first + delay_s <= at_s || comes_back())) set.pop_front();
    return set.empty() || set.front().first + delay_s > at_s ? Rungs{} : set.front().second;
  }

  /// What others do while the dials are so.
  double others_do(const Rungs& rungs) const { return launches_per_s * (1 - costs_turn * rung(rungs, Dial::turns)); }

  bool still() const { return paused_since_s >= 0 && now_s >= paused_since_s + becomes_still_s; }

  /// For so long.
  void go(Steer& steer, double for_s, const Takes& takes, Random& random, Nanoseconds target) {
    for (const double end_s = now_s + for_s; now_s < end_s; now_s += step_s) {
      LatencyHistogram ended;
      double left = per_s * step_s;  // a Poisson process
      while (active && (left -= random.exponential(1)) >= 0) {
        const double took_ms = (still() ? alone : takes)(effective(now_s), now_s, random);
        ended.add(ms(took_ms));
        ++bursts;
        longer += ms(took_ms) > target;
      }
      const bool changed =
          steer.step({.now = seconds(now_s),
                      .bursts = &ended,
                      .active = active && ended.count() > 0,
                      .absent = absent,
                      .no_others = no_others,
                      .quiet = quiet,
                      .last = absent || no_others ? Rungs{} : last,
                      .leaving = says_delay && !set.empty() &&
                                 rung(effective(now_s), Dial::kept) < rung(set.back().second, Dial::kept),
                      .can_pause = can_pause,
                      .still = still(),
                      .who = who,
                      .launches = others_do(effective(now_s)) * step_s});
      paused_since_s = !steer.pauses() ? -1 : paused_since_s < 0 ? now_s : paused_since_s;
      if (steer.pauses()) paused_s += step_s;
      if (set.empty() || set.back().second != steer.rungs()) {
        changes += !set.empty() && changed;
        set.emplace_back(now_s, steer.rungs());
      }
    }
  }
};

}  // namespace gpuctl::sched::plant
