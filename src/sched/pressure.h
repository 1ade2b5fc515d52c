// Pressure as Linux has it for processors (PSI): for which part of the time work waited. `some`: a program waited;
// `full`: one waited, and no program with work had anything. The averages over 10, 60 and 300 s count each instant the
// less the longer it is ago. Pure; time is an argument.
#pragma once

#include <array>
#include <chrono>
#include <optional>

namespace gpuctl::sched {

class Pressure {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  static constexpr std::array<std::chrono::seconds, 3> kWindows{std::chrono::seconds{10}, std::chrono::seconds{60},
                                                                std::chrono::seconds{300}};
  struct Kind {
    std::array<double, 3> part{};  ///< of the time, by window: 0 to 1
    Nanoseconds total{};           ///< since it was first noted
  };
  struct Seen {
    Kind some, full;
  };

  /// So it is from now on, until the next call.
  void note(bool some, bool full, Nanoseconds now);
  Seen at(Nanoseconds now) const;

 private:
  Seen seen_;  ///< up to since_
  bool some_ = false, full_ = false;
  std::optional<Nanoseconds> since_;
};

}  // namespace gpuctl::sched
