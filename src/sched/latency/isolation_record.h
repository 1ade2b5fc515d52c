// What is known of programs by slice: what their bursts took beside others, shared and isolated. It is bounded, and its
// owner keeps it over restarts. Pure; time is an argument.
#pragma once

#include <boost/json/fwd.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sched/latency/evidence.h"
#include "sched/latency/isolation.h"

namespace gpuctl::sched {

/// The program in a command line, for the record: the name of its file, and with an interpreter or launcher that of the
/// script or module too. Options and arguments say nothing: they differ from start to start.
std::string program_of(std::string_view command);

class IsolationRecord {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  /// Then one makes room of the slice that has the most with those below it: whoever has many pushes out nobody else's.
  static constexpr std::size_t kMostPrograms = 256;
  static constexpr std::size_t kMostName = 128;  ///< bytes of a program's name
  /// As many tell about what a percentile is: with fewer nothing is learnt.
  static constexpr std::uint64_t kEnough = kTellsMet;

  struct Others {
    double launches = 0;    ///< of them in the `passed` time
    std::uint64_t who = 0;  ///< a number that names them
  };
  /// Bursts of a program of the slice that ended in the `passed` time while others had work.
  void add(std::string_view slice, std::string_view program, bool isolated, const LatencyHistogram& bursts,
           const Others& others, Nanoseconds passed, Nanoseconds now);
  /// It starts anew, maybe with another isolation: what it took before is of an earlier start.
  void started(std::string_view slice, std::string_view program);

  struct Program {
    std::string name;
    MeasuredProgram measured;
  };
  /// Those of the slice, the one that was seen last first.
  std::vector<Program> of(std::string_view slice) const;
  void keep(const std::function<bool(const std::string& slice)>& exists);

  boost::json::value to_json() const;
  /// Replaces everything; on an error nothing changes.
  Result<void> from_json(const boost::json::value& state);
  /// True if something was learnt since the last call.
  bool take_changed() { return std::exchange(changed_, false); }

 private:
  struct Known {
    std::string slice, name;
    MeasuredProgram measured;
    /// Of the present start.
    Evidence now{1000};
    bool isolated = false;
    Others others;  ///< in all of `time`
    Nanoseconds time{};
    std::uint64_t learnt = 0;  ///< bursts when `measured` was last made of them
  };
  std::list<Known>::iterator find(std::string_view slice, std::string_view program);
  void make_room();
  Known& seen(std::string_view slice, std::string_view program);

  std::list<Known> known_;  ///< the one that was seen last first
  bool changed_ = false;
};

}  // namespace gpuctl::sched
