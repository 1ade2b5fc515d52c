// Has the driver limit the memory of control groups as their slices are limited (sched/group_limits.h). Whoever is told
// of a change looks at all of it a moment later, so that many changes at once cost one look.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gpuctld/host/group_limits.h"
#include "sched/group_limits.h"

namespace gpuctl::daemon {

/// Everything is called on the thread that runs the io_context.
class DriverLimits {
 public:
  struct Pace {
    /// Between two questions, each of which is a process of root's; or longer, after one that took long.
    std::chrono::milliseconds rest{250};
    /// Until a limit is lowered: others may start, or come back to a daemon that was started again.
    std::chrono::milliseconds lower{3'000};
    std::chrono::milliseconds again{60'000};  ///< until a group is tried again for which it failed
  };
  struct Hooks {
    std::function<const sched::Slices&()> slices;
    std::function<std::vector<sched::GroupedProgram>()> programs;
    /// By GPU, for a group of the slice with so many programs.
    std::function<std::vector<std::uint64_t>(const std::string& slice, std::size_t programs)> limits;
    /// Of the group that has this path now; 0: there is none. Another one of the same path has another one.
    std::function<std::uint64_t(const std::string& cgroup)> id_of;
    std::function<bool()> anybody;  ///< whether there is somebody to be asked
    std::function<void(const GroupLimits&, LimitsHelper::Done)> ask;
    std::function<void(const std::string&)> log;
  };

  /// `uuids`: of the GPUs.
  DriverLimits(boost::asio::io_context& context, std::vector<std::string> uuids, Hooks hooks, Pace pace);

  /// Programs came, went or were moved, or slices changed.
  void look_soon();
  void stop();

  /// The most that the driver lets a group of the slice have on this GPU; none: it limits none.
  std::optional<std::uint64_t> of(const std::string& slice, std::size_t gpu) const;
  /// Why some limit is not in force, for a person.
  std::optional<std::string> problem() const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct OnGpu {
    std::uint64_t wanted = sched::kNoDriverLimit, told = sched::kNoDriverLimit;
    bool in_force = false;  ///< what was told is
  };
  struct Group {
    std::uint64_t id = 0;
    std::string slice, problem;
    std::vector<OnGpu> gpus;
    Time lower = Time::max(), again{}, asked{};
  };

  void look_at(Time time);
  void look();
  void follow();
  Time due(Group& group, Time now) const;
  void ask(const std::string& cgroup, Group& group);
  void hear(const GroupLimits& question, const Result<std::vector<std::string>>& outcomes);

  std::vector<std::string> uuids_;
  Hooks hooks_;
  Pace pace_;
  boost::asio::steady_timer timer_;
  std::map<std::string, Group> groups_;  ///< by path, as many as slices name
  Time rests_{};                         ///< until then
  bool soon_ = false, asks_ = false;
  bool over_ = false;  ///< the driver sets no limits, or the daemon ends
};

}  // namespace gpuctl::daemon
