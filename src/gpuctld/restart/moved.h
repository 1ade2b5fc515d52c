// Programs that were moved to another slice than the one that they name when they come back to the next daemon. Kept in
// the record of what they hold (holdings.h). One thread.
#pragma once

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
  /// More are forgotten, the earliest first.
  static constexpr std::size_t kMost = 4096;

  /// Forgets processes that have ended.
  void note(const ProcessIdentity& process, std::string slice);
  void restore(std::vector<MovedProgram> programs) { programs_ = std::move(programs); }
  /// Forgets slices that no longer exist: a new slice of the same name is another slice.
  void keep(const std::function<bool(const std::string& slice)>& exists) {
    std::erase_if(programs_, [&](const MovedProgram& program) { return !exists(program.slice); });
  }
  /// Null: it was not moved.
  const std::string* of(const ProcessIdentity& process) const;
  const std::vector<MovedProgram>& programs() const { return programs_; }

 private:
  std::vector<MovedProgram> programs_;
};

}  // namespace gpuctl::daemon
