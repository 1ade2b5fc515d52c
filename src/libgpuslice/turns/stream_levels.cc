#include "libgpuslice/turns/stream_levels.h"

#include <algorithm>
#include <new>

namespace gpuslice {

StreamLevels& StreamLevels::get() {
  static auto* instance = new StreamLevels;  // programs launch in destructors too
  return *instance;
}

void StreamLevels::made(CUstream stream, int cuda_priority) {
  std::lock_guard lock(mutex_);
  streams_[stream_key(stream)].cuda_priority = cuda_priority;
}

void StreamLevels::copied(CUstream to, CUstream from) {
  std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream_key(from));
  const Stream original = found == streams_.end() ? Stream{} : found->second;
  Stream& copy = streams_[stream_key(to)];
  copy.cuda_priority = original.cuda_priority;
  copy.asked = original.asked;
}

void StreamLevels::destroyed(CUstream stream) {
  std::lock_guard lock(mutex_);
  streams_.erase({stream, 0});
}

void StreamLevels::ask(CUstream stream, int level) {
  std::lock_guard lock(mutex_);
  streams_[stream_key(stream)].asked = std::clamp(level, -kMost, kMost);
}

StreamLevels::Known StreamLevels::of(const StreamKey& key) {
  std::lock_guard lock(mutex_);
  Stream& stream = streams_[key];
  if (stream.number == 0) stream.number = ++numbers_;
  const int level = stream.asked.value_or(-std::clamp(stream.cuda_priority, -kMost, kMost));
  return {stream.number, static_cast<std::int16_t>(level)};
}

void StreamLevels::forget_after_fork() {
  new (&get()) StreamLevels;
}

}  // namespace gpuslice
