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
    std::chrono::milliseconds rest{250};      ///< between two questions: each is a process of root's
    std::chrono::milliseconds again{60'000};  ///< until what failed is tried again, with the next look
    /// After a restart: until the programs of the daemon before are back. Without them a limit would be too low.
    std::chrono::milliseconds after_restart{5'000};
  };
  struct Hooks {
    std::function<std::vector<sched::GroupedProgram>()> programs;
    std::function<const sched::Slices&()> slices;
    /// By GPU, for a group of the slice with so many programs.
    std::function<std::vector<sched::DriverLimit>(const std::string& slice, std::size_t programs)> limits;
    std::function<bool(const std::string& cgroup)> exists;
    std::function<bool()> anybody;  ///< whether there is somebody to be asked
    std::function<void(const GroupLimits&, LimitsHelper::Done)> ask;
    std::function<void(const std::string&)> log;
  };

  /// `uuids`: of the GPUs. `file`: what is set is kept there; "": nowhere.
  DriverLimits(boost::asio::io_context& context, std::vector<std::string> uuids, std::string file, Hooks hooks,
               Pace pace);

  /// Programs came, went or were moved, or slices changed.
  void look_soon();
  void stop();

  /// The most that the driver lets a group of the slice have on this GPU; none: it limits none.
  std::optional<std::uint64_t> of(const std::string& slice, std::size_t gpu) const;
  /// Why some limit is not in force, for a person.
  std::optional<std::string> problem() const;

 private:
  struct OnGpu {
    sched::DriverLimit wanted, told;
    bool ours = false;   ///< a limit is set, by us
    bool stale = false;  ///< the group may be another one of that name
    std::optional<sched::DriverLimit> failed = {};
    bool due(bool again) const { return differs() && (again || failed != wanted); }
    bool differs() const { return wanted != told || (stale && ours); }
  };
  struct Group {
    std::string slice, problem;
    std::vector<OnGpu> gpus;
    bool busy = false;  ///< programs are in it
    std::chrono::steady_clock::time_point again{};
    bool is_ours() const;
  };
  using Groups = std::map<std::string, Group>;

  void look();
  void follow();
  void ask_next();
  void hear(Group& group, const GroupLimits& question, const std::vector<std::size_t>& asked,
            const Result<std::vector<std::string>>& outcomes);
  void wait(std::chrono::milliseconds pause);
  void load();
  void save();

  std::vector<std::string> uuids_;
  const std::string file_;
  Hooks hooks_;
  Pace pace_;
  boost::asio::steady_timer timer_;
  Groups groups_;
  std::string last_;    ///< group that was asked for
  std::string saved_;   ///< what the file has
  std::string logged_;  ///< why, as the log said it last
  bool waits_ = false, asks_ = false, absent_ = false, stopped_ = false;
};

}  // namespace gpuctl::daemon
