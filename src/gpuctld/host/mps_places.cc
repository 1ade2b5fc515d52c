#include "gpuctld/host/mps_places.h"

#include <unistd.h>

#include <algorithm>
#include <boost/uuid/name_generator_sha1.hpp>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "sched/slices.h"

namespace gpuctl::daemon {

namespace {

/// Five bits each. The path of a pipe directory must be short, as the paths of sockets are.
constexpr char kDigits[] = "abcdefghijklmnopqrstuvwxyz234567";
constexpr std::size_t kNameBytes = 10;

}  // namespace

/// Takes over those that an earlier daemon started.
MpsPlaces::MpsPlaces(boost::asio::io_context& context, Settings settings, ManagedMps::Log log)
    : context_(context), settings_(std::move(settings)), log_(std::move(log)) {
  if (settings_.directory.empty()) return;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(settings_.directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (mps_process_in(entry->path(), "/proc", ::geteuid()))
      place(name, name == kSharedMps ? "" : " of an isolated slice");
  }
}

/// Users choose the names of their slices, so two with the same name here must not be found: 80 bits of SHA-1, without
/// those that are the same in all UUIDs of this kind.
std::string MpsPlaces::name_of(std::string_view slice) {
  const auto uuid = boost::uuids::name_generator_sha1(boost::uuids::ns::url())(slice.data(), slice.size());
  std::uint64_t bits = 0;
  std::string name;
  for (std::size_t i = 0, free = 0; i < kNameBytes; ++i) {
    bits = bits << 8 | *(uuid.begin() + (i < 6 ? i : i + 3));
    for (free += 8; free >= 5; free -= 5) name += kDigits[bits >> (free - 5) & 31];
  }
  return name;
}

bool MpsPlaces::is_for(std::string_view name, std::string_view slice) {
  for (;; slice = sched::parent_path(slice)) {
    if (name_of(slice) == name) return true;
    if (slice == "/") return false;
  }
}

ManagedMps& MpsPlaces::place(const std::string& name, const std::string& whose) {
  std::unique_ptr<ManagedMps>& found = places_[name];
  if (!found)
    found = std::make_unique<ManagedMps>(context_,
                                         ManagedMps::Place{settings_.directory + "/" + name, settings_.socket,
                                                           settings_.start_socket, settings_.control_socket, whose},
                                         log_);
  return *found;
}

/// For one of a slice's own: one place is for kSharedMps. Those that do not run, and that nobody waits for, are
/// forgotten where there are too many.
bool MpsPlaces::has_room_for(const std::string& name, std::optional<sched::SliceOwner> owner) {
  if (places_.contains(name)) return true;
  const auto has_room = [&] {
    const auto of_owner = [&](const auto& entry) { return entry.second == owner; };
    return places_.size() + (places_.contains(kSharedMps) ? 0 : 1) < kMostMps &&
           (!owner || std::cmp_less(std::ranges::count_if(owners_, of_owner), kMostMpsOfOwner));
  };
  if (has_room()) return true;
  std::erase_if(places_, [](const auto& entry) { return entry.second->rests(); });
  std::erase_if(owners_, [this](const auto& entry) { return !places_.contains(entry.first); });
  return has_room();
}

bool MpsPlaces::runs(const std::string& name) {
  const auto found = places_.find(name);
  return found != places_.end() && found->second->active();
}

std::string MpsPlaces::directory_of(const std::string& name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? "" : found->second->directory();
}

std::string MpsPlaces::name_in(std::string_view directory) const {
  for (const auto& [name, place] : places_)
    if (place->directory() == directory) return name;
  return "";
}

bool MpsPlaces::wait(const std::string& name, const std::string& slice, std::optional<sched::SliceOwner> owner,
                     const void* who, std::function<void()> then) {
  if (!manages_) return false;
  const bool shared = name == kSharedMps;
  if (shared ? !ours() && mps_active() : !has_room_for(name, owner)) return false;
  if (owner && !shared) owners_.insert_or_assign(name, *owner);
  return place(name, shared ? "" : " for slice " + slice).wait(who, std::move(then));
}

void MpsPlaces::forget(const void* who) {
  for (const auto& [name, place] : places_) place->forget(who);
}

std::optional<std::string> MpsPlaces::offered(const std::string& name, std::uint32_t uid) {
  const auto found = places_.find(name);
  if (!manages_ || found == places_.end() || !found->second->admits(uid)) return std::nullopt;
  return found->second->directory();
}

void MpsPlaces::note_use(const std::map<std::string, std::uint32_t>& users) {
  for (const auto& [name, place] : places_) {
    const auto user = users.find(name);
    place->note_use(user == users.end() ? std::nullopt : std::optional(user->second));
  }
}

std::string MpsPlaces::served_by(std::int32_t pid) {
  for (const auto& [name, place] : places_)
    if (is_mps_server(pid, place->directory())) return name;
  return is_mps_server(pid, mps_pipe_directory()) ? kSharedMps : "";
}

std::string MpsPlaces::trouble(const std::string& name) const {
  if (::access(mps_control_program().c_str(), X_OK) != 0)
    return "there is no nvidia-cuda-mps-control, which comes with NVIDIA's driver";
  const auto found = places_.find(name);
  return found == places_.end() || found->second->trouble().empty() ? ""
                                                                    : "it was not started: " + found->second->trouble();
}

void MpsPlaces::stop() {
  for (const auto& [name, place] : places_) place->stop();
}

}  // namespace gpuctl::daemon
