#include "softgpu/contexts/stream.h"

#include "softgpu/contexts/context.h"
#include "softgpu/host/thread.h"
#include "softgpu/host/wait.h"

namespace gpuctl::softgpu {

CUresult Stream::error() const {
  return green_ != nullptr && green_->destroyed.load() ? CUDA_ERROR_CONTEXT_IS_DESTROYED : context_->error();
}

std::uint64_t Stream::submit(std::function<void()> operation, std::vector<StreamPoint> after, bool waits) {
  const std::lock_guard lock(mutex_);
  if (!started_) started_ = start_thread("softgpu-stream", [self = shared_from_this()] { self->work(); });
  if (!started_) return 0;
  operations_.push_back({std::move(operation), std::move(after), queue_ ? queue_->issue() : 0, waits});
  queued_.notify_one();
  return ++submitted_;
}

std::uint64_t Stream::last() const {
  const std::lock_guard lock(mutex_);
  return submitted_;
}

bool Stream::finished(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return completed_ >= number;
}

void Stream::wait(std::uint64_t number) const {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return completed_ >= number; });
}

bool Stream::wait_unless_stopped(std::uint64_t number) const {
  std::unique_lock lock(mutex_);
  return wait_until_stopped(finished_, lock, context_->stopped(), [&] { return completed_ >= number; });
}

std::optional<CUstreamAttrValue> Stream::hint(CUstreamAttrID id) const {
  const std::lock_guard lock(mutex_);
  const auto found = hints_.find(id);
  return found == hints_.end() ? std::nullopt : std::optional(found->second);
}

void Stream::set_hint(CUstreamAttrID id, const CUstreamAttrValue& value) {
  const std::lock_guard lock(mutex_);
  hints_[id] = value;
}

void Stream::copy_hints(const Stream& from) {
  if (&from == this) return;
  const std::scoped_lock lock(mutex_, from.mutex_);
  hints_ = from.hints_;
}

void Stream::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  queued_.notify_one();
}

void Stream::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    queued_.wait(lock, [this] { return !operations_.empty() || closed_; });
    if (operations_.empty()) return;
    Operation operation = std::move(operations_.front());
    operations_.pop_front();
    lock.unlock();
    for (const StreamPoint& point : operation.after) point.stream->wait(point.number);
    if (queue_) queue_->wait_for_turn(operation.place);
    if (queue_ && !operation.waits) queue_->pass();
    operation.run();
    if (queue_ && operation.waits) queue_->pass();
    operation = {};  // release its objects before it counts as complete
    lock.lock();
    ++completed_;
    if (at_completion_) std::exchange(at_completion_, nullptr)();
    finished_.notify_all();
  }
}

}  // namespace gpuctl::softgpu
