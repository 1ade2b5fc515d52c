#include "gpuctld/restart/moved.h"

#include <map>
#include <utility>

namespace gpuctl::daemon {

void Moved::note(MovedProgram program) {
  std::erase_if(programs_, [&](const MovedProgram& other) { return other.process == program.process; });
  if (programs_.size() >= std::min(look_at_, most_)) forget_ended();
  if (programs_.size() >= most_) make_room();
  programs_.push_back(std::move(program));
}

/// Each is looked at in /proc, which takes time.
void Moved::forget_ended() {
  std::erase_if(programs_, [](const MovedProgram& one) { return start_of(one.process.pid) != one.process.start; });
  look_at_ = std::max<std::size_t>(64, 2 * programs_.size());
}

void Moved::make_room() {
  std::map<std::uint32_t, std::size_t> count;
  for (const MovedProgram& one : programs_) ++count[one.process.uid];
  const std::uint32_t most = std::ranges::max_element(count, {}, [](const auto& user) { return user.second; })->first;
  programs_.erase(std::ranges::find(programs_, most, [](const MovedProgram& one) { return one.process.uid; }));
}

const MovedProgram* Moved::of(const ProcessIdentity& process) const {
  const auto found = std::ranges::find(programs_, process, &MovedProgram::process);
  return found == programs_.end() ? nullptr : &*found;
}

}  // namespace gpuctl::daemon
