#include "libgpuslice/streams/waiting_streams.h"

#include <algorithm>
#include <new>

#include "libgpuslice/driver/current_context.h"

namespace gpuslice {

WaitingStreams& WaitingStreams::get() {
  static auto* const all = new WaitingStreams;  // never destroyed: programs use streams in destructors too
  return *all;
}

WaitingStreams::Putting::Putting(WaitingStreams& all, CUstream stream, Wait wait)
    : all_(all), context_(current_context()), key_(stream_key(stream)) {
  std::lock_guard lock(all_.mutex_);
  auto known =
      std::find_if(all_.streams_.begin(), all_.streams_.end(), [&](const One& one) { return one.is(context_, key_); });
  if (known == all_.streams_.end()) known = all_.streams_.insert(known, {context_, key_, 0, 0, false});
  known->for_a_value |= wait == Wait::kValue;
  ++known->putting;
  ++known->put;
}

WaitingStreams::Putting::~Putting() {
  std::lock_guard lock(all_.mutex_);
  for (One& one : all_.streams_) {
    if (one.is(context_, key_) && one.putting > 0) --one.putting;
  }
}

bool WaitingStreams::done(const One& one) {
  const CUstream stream = one.key.first;
  if (!stream || one.putting > 0 || one.key != stream_key(stream)) return false;
  const bool is_default = stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  if (is_default && one.context != current_context()) return false;
  return driver().cuStreamQuery && driver().cuStreamQuery(stream) == CUDA_SUCCESS;
}

bool WaitingStreams::any_for_a_value() {
  std::lock_guard lock(mutex_);
  return std::any_of(streams_.begin(), streams_.end(), [](const One& one) { return one.for_a_value; });
}

bool WaitingStreams::none_for(Wait wait) {
  std::lock_guard asking(asking_);
  std::vector<One> asked;
  {
    std::lock_guard lock(mutex_);
    asked = streams_;
  }
  if (wait == Wait::kValue) std::erase_if(asked, [](const One& one) { return !one.for_a_value; });
  bool none = true;
  for (const One& one : asked) {
    if (!done(one)) {
      none = false;
      continue;
    }
    std::lock_guard lock(mutex_);
    const auto same = [&](const One& other) {
      return other.is(one.context, one.key) && other.put == one.put && other.putting == 0;
    };
    none &= std::erase_if(streams_, same) > 0;
  }
  return none;
}

void WaitingStreams::destroyed(CUstream stream) {
  std::lock_guard asking(asking_);
  std::vector<One> asked;
  {
    std::lock_guard lock(mutex_);
    asked = streams_;
  }
  for (const One& one : asked) {
    if (one.key.first != stream) continue;
    const bool is_done = done(one);
    std::lock_guard lock(mutex_);
    const auto known = std::find_if(streams_.begin(), streams_.end(),
                                    [&](const One& other) { return other.is(one.context, one.key); });
    if (known == streams_.end()) continue;
    if (is_done)
      streams_.erase(known);
    else
      *known = {known->context, {}, 0, known->put, known->for_a_value};
  }
}

void WaitingStreams::forget(CUcontext context) {
  std::lock_guard asking(asking_);
  std::lock_guard lock(mutex_);
  std::erase_if(streams_, [context](const One& one) { return one.context == context; });
}

void WaitingStreams::forget_after_fork() {
  new (this) WaitingStreams;
}

}  // namespace gpuslice
