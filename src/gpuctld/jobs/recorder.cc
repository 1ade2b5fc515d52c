#include "gpuctld/jobs/recorder.h"

#include <algorithm>
#include <utility>

namespace gpuctl::daemon {

static std::size_t kept_bytes(const Recorder::Ended& ended) {
  const ipc::Launch& launch = ended.launch;
  return sizeof ended + launch.slice.size() + launch.kernel.size() + launch.module.size() + launch.key.size();
}

void Recorder::add(Ended ended) {
  if (!wanted()) return;
  bytes_ += kept_bytes(ended);
  kept_.push_back(std::move(ended));
  while (bytes_ > kMostKeptBytes) drop_first();
}

Recorder::Part Recorder::read(const void* reader, bool original) {
  const std::uint64_t end = first_ + kept_.size();
  std::uint64_t& next = readers_.try_emplace(reader, end).first->second;
  Part part;
  part.lost = first_ > next ? first_ - next : 0;
  for (next = std::max(next, first_); next < end && part.launches.size() < ipc::kMostLaunchesInReply; ++next)
    if (original || !kept_[next - first_].launch.original) part.launches.push_back(kept_[next - first_]);
  part.more = next < end;
  drop_what_all_have();
  return part;
}

void Recorder::forget(const void* reader) {
  readers_.erase(reader);
  drop_what_all_have();
}

void Recorder::drop_first() {
  bytes_ -= kept_bytes(kept_.front());
  kept_.pop_front();
  ++first_;
}

void Recorder::drop_what_all_have() {
  std::uint64_t needed = first_ + kept_.size();
  for (const auto& [reader, next] : readers_) needed = std::min(needed, next);
  while (first_ < needed) drop_first();
}

}  // namespace gpuctl::daemon
