// How well programs are served while they run: the metrics of FRS section V (metrics.h), over the latest seconds.
//
// FRS's jobs are applications, which may be several kernels. Here an application is a *burst* of a program on a device:
// all its launches from when the program has nothing outstanding until it has nothing outstanding again. A burst's
// turnaround is the time from the issue of its first launch to the end of its last one. Alone it takes as long as its
// launches take alone, one after the other. As in FRS, times are averaged by program before metrics are taken, so a
// program with many bursts counts no more than one with few. Single launches are measured beside that.
//
// Memory is bounded: sums are kept by program and second.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "sched/metrics.h"

namespace gpuctl::sched {

/// Figures are of what ended in so many whole seconds and the one that has begun.
inline constexpr std::int64_t kFairnessSeconds = 10;
/// Programs that are remembered, one on two devices counting twice. Beyond, the one that is silent the longest is
/// forgotten.
inline constexpr std::size_t kMostWatched = 4096;

/// A launch that ended. Instants are of one clock, issued < done.
struct LaunchEnd {
  Time issued{};
  Time done{};
  Time alone{};                 ///< how long it takes alone on the whole device; 0: not known
  Time oldest_issued = kNever;  ///< issue of the oldest launch that the program has outstanding; kNever: it has none
  bool all_reported = true;     ///< false: launches beside it may be missing, so its burst is not counted
};

struct Slowdowns {
  std::uint64_t count = 0;
  double mean = 0, deviation = 0, worst = 0;  ///< of the NTTs of single launches
};

struct FairnessFigures {
  std::uint64_t programs = 0;  ///< with bursts that count
  std::uint64_t bursts = 0;    ///< that began, but for those of which parts are missing
  Metrics applications;        ///< of the programs' mean times
  Slowdowns launches;
};

class Fairness {
 public:
  /// A number for a program on a device.
  std::uint64_t new_program() { return ++programs_made_; }

  /// A launch of the program, which runs in the slice, ended. Launches of one program come about in the order of their
  /// ends.
  void add(std::uint64_t program, std::string_view slice, const LaunchEnd& launch);

  /// By path, of each slice in or below which a launch ended in the window. A burst that goes on counts as far as its
  /// launches have ended.
  std::map<std::string, FairnessFigures> figures(Time now) const;

  std::size_t programs() const { return programs_.size(); }

 private:
  /// Sums of what ended in one second.
  struct Second {
    std::int64_t number = -1;
    std::uint64_t bursts = 0, launches = 0;
    Time alone{}, turnaround{};              ///< of bursts
    double sum = 0, squares = 0, worst = 0;  ///< of launches' NTTs
  };
  struct Burst {
    Time first{}, last{}, alone{};
    bool open = false;
    bool goes_on = false;  ///< its beginning was counted already
    bool whole = true;     ///< all its launches were reported, and it is known how long they take alone
    bool counts() const { return open && whole && alone > Time{0} && last > first; }
  };
  struct Program {
    std::string slice;
    Time latest{};  ///< end
    Burst burst;
    std::array<Second, kFairnessSeconds + 1> seconds;
  };
  Program& find_or_add(std::uint64_t program, std::string_view slice, Time now);
  static Second* second_of(Program& program, Time ended);
  static void add_to_burst(Program& program, const LaunchEnd& launch);
  static void close_burst(Program& program);

  std::map<std::uint64_t, Program> programs_;
  std::uint64_t programs_made_ = 0;
};

}  // namespace gpuctl::sched
