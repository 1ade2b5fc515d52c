#include "gpuctld/restart/moved.h"

#include <map>
#include <utility>

namespace gpuctl::daemon {

namespace {

/// Where nothing makes room, those that have ended are looked for again after so large a part of all was noted: who
/// moves many makes the daemon look at a few for each.
constexpr std::size_t kPart = 8;

}  // namespace

void Moved::note(MovedProgram program) {
  forget(program.process);
  const std::uint32_t uid = program.process.uid;
  const auto has_too_many = [&] { return uid != 0 && of_user(uid) >= kMostOfUser; };
  const bool look = programs_.size() >= std::min(look_at_, most_) || has_too_many();
  if (look && kPart * noted_ >= programs_.size()) forget_ended();
  if (has_too_many()) forget_earliest_of(uid);
  if (programs_.size() >= most_) {
    std::map<std::uint32_t, std::size_t> count;
    for (const MovedProgram& one : programs_) ++count[one.process.uid];
    forget_earliest_of(std::ranges::max_element(count, {}, [](const auto& user) { return user.second; })->first);
  }
  programs_.push_back(std::move(program));
  ++noted_;
}

bool Moved::forget(const ProcessIdentity& process) {
  return std::erase_if(programs_, [&](const MovedProgram& one) { return one.process == process; }) > 0;
}

std::size_t Moved::of_user(std::uint32_t uid) const {
  return static_cast<std::size_t>(
      std::ranges::count(programs_, uid, [](const MovedProgram& one) { return one.process.uid; }));
}

void Moved::forget_ended() {
  std::erase_if(programs_, [this](const MovedProgram& one) { return !lives_(one.process); });
  look_at_ = std::max<std::size_t>(64, 2 * programs_.size());
  noted_ = 0;
}

void Moved::forget_earliest_of(std::uint32_t uid) {
  programs_.erase(std::ranges::find(programs_, uid, [](const MovedProgram& one) { return one.process.uid; }));
}

const MovedProgram* Moved::of(const ProcessIdentity& process) const {
  const auto found = std::ranges::find(programs_, process, &MovedProgram::process);
  return found == programs_.end() ? nullptr : &*found;
}

}  // namespace gpuctl::daemon
