#include "gpuctld/restart/moved.h"

#include <algorithm>
#include <utility>

namespace gpuctl::daemon {

void Moved::note(const ProcessIdentity& process, std::string slice) {
  std::erase_if(programs_, [&](const MovedProgram& other) {
    return other.process == process || start_of(other.process.pid) != other.process.start;
  });
  if (programs_.size() == kMost) programs_.erase(programs_.begin());
  programs_.push_back({process, std::move(slice)});
}

const std::string* Moved::of(const ProcessIdentity& process) const {
  const auto found = std::ranges::find(programs_, process, &MovedProgram::process);
  return found == programs_.end() ? nullptr : &found->slice;
}

}  // namespace gpuctl::daemon
