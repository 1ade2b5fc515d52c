#include "libgpuslice/streams/waiting_streams.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/current_context.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/relaxed_capture.h"

namespace gpuslice {

namespace {

/// With so many, those that have got on are forgotten even if nobody asks.
constexpr std::size_t kMany = 64;

/// Threads' own streams by numbers that are not used again, as those of pthread_self() are.
StreamKey key_of(CUstream stream) {
  static std::atomic<unsigned long> threads{0};
  thread_local const unsigned long number = ++threads;
  return {stream, stream == CU_STREAM_PER_THREAD ? number : 0};
}

}  // namespace

WaitingStreams& WaitingStreams::get() {
  static auto* const all = new WaitingStreams;  // never destroyed: programs use streams in destructors too
  return *all;
}

WaitingStreams::Putting::Putting(WaitingStreams& all, CUstream stream, Wait wait) : all_(all) {
  const CUcontext context = context_of(stream);
  const StreamKey key = key_of(stream);
  const auto find = [&] {
    const auto known = std::ranges::find_if(
        all_.streams_, [&](const auto& one) { return one->context == context && one->key == key; });
    return known == all_.streams_.end() ? nullptr : *known;
  };
  std::unique_lock lock(all_.mutex_);
  one_ = find();
  if (!one_ && all_.streams_.size() >= kMany) {
    lock.unlock();
    all_.none();
    lock.lock();
  }
  if (!one_ && !(one_ = find())) {
    one_ = std::make_shared<One>(One{.context = context, .key = key});
    all_.streams_.push_back(one_);
  }
  one_->for_a_value |= wait == Wait::kValue;
  ++one_->putting;
  one_->put = ++all_.puts_;
}

WaitingStreams::Putting::~Putting() {
  if (one_->key.first == CU_STREAM_PER_THREAD) {
    std::lock_guard asking(all_.asking_);
    const RelaxedCapture relaxed;
    all_.mark(*one_, one_->put);  // only this thread puts anything there
  }
  std::lock_guard lock(all_.mutex_);
  --one_->putting;
}

std::vector<std::shared_ptr<WaitingStreams::One>> WaitingStreams::copy() {
  std::lock_guard lock(mutex_);
  return streams_;
}

/// The caller holds asking_ in what follows, and captures do not forbid it calls that do not concern streams.

/// Records an event in the stream, which is not captured.
void WaitingStreams::mark(One& one, std::uint64_t put) {
  const Driver& d = driver();
  if (!d.cuEventCreate || !d.cuEventRecord) return;
  const InContext there(one.context);
  if (!one.event) {
    const auto spare = std::ranges::find(spare_, one.context, &std::pair<CUcontext, CUevent>::first);
    if (spare != spare_.end()) {
      one.event = spare->second;
      spare_.erase(spare);
    } else if (d.cuEventCreate(&one.event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
      one.event = nullptr;
      return;
    }
  }
  if (d.cuEventRecord(one.event, one.key.first) == CUDA_SUCCESS) one.marked = put;
}

/// What the event says, if there is one. An error other than the one that says to wait means that the context is
/// broken, so nothing runs there any more.
bool WaitingStreams::passed(One& one, std::uint64_t put) {
  return one.marked == put && driver().cuEventQuery(one.event) != CUDA_ERROR_NOT_READY;
}

/// Asks the stream itself, which is not captured.
bool WaitingStreams::passed_or_mark(One& one, std::uint64_t put) {
  const CUstream stream = one.key.first;
  if (one.marked == put) return passed(one, put);
  if (!stream || (stream == CU_STREAM_PER_THREAD && one.key != key_of(stream)) || !driver().cuStreamQuery) return false;
  {
    const InContext there(one.context);
    if (driver().cuStreamQuery(stream) != CUDA_ERROR_NOT_READY) return true;
  }
  // In the default stream an event would wait for all blocking streams, and these for the event.
  if (stream != CU_STREAM_LEGACY) mark(one, put);
  return false;
}

/// Forgets the stream unless something was put into it meanwhile.
bool WaitingStreams::drop(const std::shared_ptr<One>& one, std::uint64_t put) {
  if (one->event) spare_.reserve(spare_.size() + 1);
  std::lock_guard lock(mutex_);
  if (one->put != put || one->putting > 0) return false;
  std::erase(streams_, one);
  if (one->event) spare_.emplace_back(one->context, one->event);
  return true;
}

bool WaitingStreams::any_for_a_value() {
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(streams_, [](const auto& one) { return one->for_a_value; });
}

bool WaitingStreams::none_for(Wait wait) {
  std::lock_guard asking(asking_);
  bool none = true;
  std::vector<std::pair<std::shared_ptr<One>, std::uint64_t>> asked;
  {
    std::lock_guard lock(mutex_);
    for (const auto& one : streams_) {
      if (wait == Wait::kValue && !one->for_a_value) continue;
      if (one->putting > 0)
        none = false;
      else
        asked.emplace_back(one, one->put);
    }
  }
  if (asked.empty()) return none;
  const RelaxedCapture relaxed;
  const NoCapture none_begins;
  for (const auto& [one, put] : asked) {
    const bool is_over = none_begins ? passed_or_mark(*one, put) : passed(*one, put);
    none &= is_over && drop(one, put);
  }
  return none;
}

void WaitingStreams::leave(CUstream stream, bool for_ever) {
  std::lock_guard asking(asking_);
  const StreamKey key = key_of(stream);
  for (const auto& one : copy()) {
    if (one->key != key || (is_default(stream) && one->context != current_context())) continue;
    const RelaxedCapture relaxed;
    std::uint64_t put = 0;
    {
      std::lock_guard lock(mutex_);
      put = one->put;
    }
    if (!capturing(stream) && passed_or_mark(*one, put) && drop(one, put)) continue;
    std::lock_guard lock(mutex_);
    if (for_ever) one->key = {};
  }
}

void WaitingStreams::forget(CUcontext context) {
  std::lock_guard asking(asking_);
  std::lock_guard lock(mutex_);
  std::erase_if(streams_, [context](const auto& one) { return one->context == context; });
  std::erase_if(spare_, [context](const auto& spare) { return spare.first == context; });
}

void WaitingStreams::forget_after_fork() {
  new (this) WaitingStreams;
}

}  // namespace gpuslice
