// Programs that were moved to another slice than the one that they name when they come back to the next daemon. Kept in
// the record of what they hold (holdings.h). One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gpuctld/budgets/user_budgets.h"
#include "gpuctld/protocol/process.h"

namespace gpuctl::daemon {

struct MovedProgram {
  ProcessIdentity process;
  std::string slice;
  std::string mps = {};  ///< that it is in, of those of the daemon (MpsPlaces); it stays in that
  bool operator==(const MovedProgram&) const = default;
};

class Moved {
 public:
  /// Of more than these the earliest is forgotten of the user who has the most: whoever moves many loses those.
  static constexpr std::size_t kMost = 4096;
  /// Of a user other than root, as all are written each time that a grant grows.
  static constexpr std::size_t kMostOfUser = kMaxClientsOfUser;

  /// `lives`: whether a process has not ended, which takes time to find out.
  using Lives = std::function<bool(const ProcessIdentity&)>;
  explicit Moved(std::size_t most = kMost, Lives lives = is_alive) : most_(most), lives_(std::move(lives)) {}

  /// Forgets processes that have ended, where there is no room, or where there are twice as many as were alive when it
  /// last looked.
  void note(MovedProgram program);
  /// It starts anew, in the slice that it names. False: it was not moved.
  bool forget(const ProcessIdentity& process);
  void restore(std::vector<MovedProgram> programs) { programs_ = std::move(programs); }
  /// Forgets slices that no longer exist: a new slice of the same name is another slice.
  void keep(const std::function<bool(const std::string& slice)>& exists) {
    std::erase_if(programs_, [&](const MovedProgram& program) { return !exists(program.slice); });
  }
  /// Null: it was not moved.
  const MovedProgram* of(const ProcessIdentity& process) const;
  const std::vector<MovedProgram>& programs() const { return programs_; }

 private:
  static bool is_alive(const ProcessIdentity& process) { return start_of(process.pid) == process.start; }
  std::size_t of_user(std::uint32_t uid) const;
  void forget_ended();
  void forget_earliest_of(std::uint32_t uid);

  std::size_t most_;
  Lives lives_;
  std::vector<MovedProgram> programs_;
  std::size_t look_at_ = 64;  ///< so many are there when those that have ended are looked for
  std::size_t noted_ = 0;     ///< since they were
};

}  // namespace gpuctl::daemon
