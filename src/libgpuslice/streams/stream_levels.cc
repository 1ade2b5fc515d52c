#include "libgpuslice/streams/stream_levels.h"

#include <algorithm>
#include <new>

#include "libgpuslice/base/current_context.h"

namespace gpuslice {

StreamLevels& StreamLevels::get() {
  static auto* instance = new StreamLevels;  // programs launch in destructors too
  return *instance;
}

StreamLevels::Stream& StreamLevels::known(CUstream stream, CUcontext context) {
  Stream& known = streams_[stream_key(stream)];
  known.context = context;
  return known;
}

void StreamLevels::made(CUstream stream, int cuda_priority) {
  const CUcontext context = context_of(stream);
  std::lock_guard lock(mutex_);
  streams_[stream_key(stream)] = {.cuda_priority = cuda_priority, .context = context};
}

void StreamLevels::changed(CUstream stream, int cuda_priority) {
  const CUcontext context = context_of(stream);
  std::lock_guard lock(mutex_);
  known(stream, context).cuda_priority = cuda_priority;
}

void StreamLevels::copied(CUstream to, CUstream from) {
  const CUcontext context = context_of(to);
  std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream_key(from));
  const Stream original = found == streams_.end() ? Stream{} : found->second;
  Stream& copy = known(to, context);
  copy.cuda_priority = original.cuda_priority;
  copy.asked = original.asked;
}

void StreamLevels::destroyed(CUstream stream) {
  std::lock_guard lock(mutex_);
  streams_.erase({stream, 0});
}

void StreamLevels::forget(CUcontext context) {
  std::lock_guard lock(mutex_);
  std::erase_if(streams_, [context](const auto& one) { return one.second.context == context; });
}

void StreamLevels::ask(CUstream stream, int level) {
  const CUcontext context = context_of(stream);
  std::lock_guard lock(mutex_);
  known(stream, context).asked = std::clamp(level, -kMost, kMost);
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
