#include "gpuctld/jobs/recorder.h"

#include <algorithm>
#include <utility>

namespace gpuctl::daemon {

void Recorder::add(Ended ended) {
  if (!wanted()) return;
  kept_.push_back(std::move(ended));
  if (kept_.size() <= kMostKept) return;
  kept_.pop_front();
  ++first_;
}

Recorder::Part Recorder::read(const void* reader, bool original) {
  const std::uint64_t end = first_ + kept_.size();
  const auto [at, added] = readers_.try_emplace(reader, end);
  Part part;
  part.lost = first_ > at->second ? first_ - at->second : 0;
  for (std::uint64_t next = std::max(at->second, first_); next < end; ++next)
    if (original || !kept_[next - first_].launch.original) part.launches.push_back(kept_[next - first_]);
  at->second = end;
  drop_what_all_have();
  return part;
}

void Recorder::forget(const void* reader) {
  readers_.erase(reader);
  drop_what_all_have();
}

void Recorder::drop_what_all_have() {
  std::uint64_t needed = first_ + kept_.size();
  for (const auto& [reader, next] : readers_) needed = std::min(needed, next);
  for (; first_ < needed; ++first_) kept_.pop_front();
}

}  // namespace gpuctl::daemon
