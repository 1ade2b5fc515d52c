// Programs that were moved to another slice than the one that they name when they come back to the next daemon. Kept in
// the record of what they hold (holdings.h). One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "gpuctld/protocol/process.h"

namespace gpuctl::daemon {

struct MovedProgram {
  ProcessIdentity process;
  std::string slice;
  bool operator==(const MovedProgram&) const = default;
};

class Moved {
 public:
  /// Of more than these the earliest is forgotten of the user who has the most: whoever moves many loses those.
  static constexpr std::size_t kMost = 4096;

  explicit Moved(std::size_t most = kMost) : most_(most) {}

  /// Forgets processes that have ended, where there are twice as many as were alive when it last looked.
  void note(MovedProgram program);
  void restore(std::vector<MovedProgram> programs) { programs_ = std::move(programs); }
  /// Forgets slices that no longer exist: a new slice of the same name is another slice.
  void keep(const std::function<bool(const std::string& slice)>& exists) {
    std::erase_if(programs_, [&](const MovedProgram& program) { return !exists(program.slice); });
  }
  /// Null: it was not moved.
  const MovedProgram* of(const ProcessIdentity& process) const;
  const std::vector<MovedProgram>& programs() const { return programs_; }

 private:
  void forget_ended();
  void make_room();

  std::size_t most_;
  std::vector<MovedProgram> programs_;
  std::size_t look_at_ = 64;  ///< so many are there when those that have ended are looked for
};

}  // namespace gpuctl::daemon
