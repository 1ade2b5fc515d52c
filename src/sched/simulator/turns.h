// Contexts of a simulated GPU that take turns on the whole of it: all applications that are not isolated share one, and
// each isolated application has one. Who has nothing to run gives his turn away at once; a switch takes its time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sched/simulator/workload.h"

namespace gpuctl::sched {

class SimTurns {
 public:
  explicit SimTurns(const Workload& workload) : switch_(workload.switch_cost), lengths_{workload.turn} {
    for (const Application& app : workload.applications)
      if (app.isolated) lengths_.push_back(app.turn.value_or(kUsualTurn));
    ends_ = lengths_[0];
  }

  /// The contexts of all applications.
  static std::vector<std::uint32_t> contexts_of(const Workload& workload) {
    std::vector<std::uint32_t> contexts;
    std::uint32_t next = 1;
    for (const Application& app : workload.applications) contexts.push_back(app.isolated ? next++ : 0);
    return contexts;
  }
  static std::size_t context_count(const Workload& workload) {
    return 1 + static_cast<std::size_t>(std::ranges::count_if(workload.applications, &Application::isolated));
  }

  /// A turn of the context lasts so long at most, from its next one on; none: as long as the workload says.
  void bound(std::size_t context, std::optional<Time> most) {
    bounds_.resize(lengths_.size());
    bounds_[context] = most;
  }

  /// `work`: by context, whether it has something to run. True if the turn goes to another one.
  bool step(Time now, const std::vector<bool>& work) {
    const bool others = others_work(work);
    const bool over = now >= ends_ && others_wait_;
    others_wait_ = others;
    if (others && (over || !work[current_])) {
      current_ = next(work);
      from_ = now + switch_;
      ends_ = from_ + length(current_);
      others_wait_ = others_work(work);
      return true;
    }
    // Nobody waited: it went on with further turns of its own.
    if (now >= ends_) ends_ += ((now - ends_) / length(current_) + 1) * length(current_);
    return false;
  }
  /// When step() is due, if nothing else happens before.
  Time due(const std::vector<bool>& work) const { return work[current_] && others_work(work) ? ends_ : kNever; }

  std::size_t current() const { return current_; }
  Time works_from() const { return from_; }  ///< its jobs do, after the switch

 private:
  Time length(std::size_t context) const {
    const bool bounded = context < bounds_.size() && bounds_[context];
    return bounded ? std::min(lengths_[context], *bounds_[context]) : lengths_[context];
  }
  bool others_work(const std::vector<bool>& work) const {
    for (std::size_t c = 0; c < work.size(); ++c)
      if (c != current_ && work[c]) return true;
    return false;
  }
  std::size_t next(const std::vector<bool>& work) const {
    std::size_t c = current_;
    do c = (c + 1) % work.size();
    while (!work[c]);
    return c;
  }
  Time switch_;
  std::vector<Time> lengths_;
  std::vector<std::optional<Time>> bounds_;
  std::size_t current_ = 0;
  Time from_{}, ends_{};
  bool others_wait_ = false;  ///< when step() was last called
};

}  // namespace gpuctl::sched
