// Events: marks in a stream that others can wait for, with the time at which the stream passed them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "softgpu/host/wait.h"

namespace gpuctl::softgpu {

class Context;
struct CapturedRecord;

/// One recording of an event. An event that is recorded again gets a new Recording; threads that already wait keep the
/// old one.
class Recording {
 public:
  using Clock = std::chrono::steady_clock;

  void pass() {
    const std::lock_guard lock(mutex_);
    time_ = Clock::now();
    passed_ = true;
    changed_.notify_all();
  }

  bool passed() const {
    const std::lock_guard lock(mutex_);
    return passed_;
  }

  void wait() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return passed_; });
  }

  /// The same, but returns false soon after `stopped` becomes true if the event is not passed then.
  bool wait_unless(const std::atomic<bool>& stopped) const {
    std::unique_lock lock(mutex_);
    return wait_until_stopped(changed_, lock, stopped, [this] { return passed_; });
  }

  /// Valid once passed.
  Clock::time_point time() const {
    const std::lock_guard lock(mutex_);
    return time_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool passed_ = false;
  Clock::time_point time_;
};

class Event {
 public:
  Event(Context* context, unsigned flags) : context_(context), flags_(flags) {}

  Context* context() const { return context_; }
  unsigned flags() const { return flags_; }  ///< CU_EVENT_*

  void set(std::shared_ptr<Recording> recording) {
    const std::lock_guard lock(mutex_);
    recording_ = std::move(recording);
    captured_ = nullptr;
  }

  /// The last recording; nullptr if there was none (the event then counts as passed).
  std::shared_ptr<Recording> recording() const {
    const std::lock_guard lock(mutex_);
    return recording_;
  }

  /// The event was recorded in a capturing stream. Until the next set(), it stands for nodes of a graph, not for a
  /// recording.
  void set_captured(std::shared_ptr<CapturedRecord> captured) {
    const std::lock_guard lock(mutex_);
    captured_ = std::move(captured);
  }

  /// nullptr if the last recording was an ordinary one, or there was none.
  std::shared_ptr<CapturedRecord> captured() const {
    const std::lock_guard lock(mutex_);
    return captured_;
  }

 private:
  Context* const context_;
  const unsigned flags_;
  mutable std::mutex mutex_;
  std::shared_ptr<Recording> recording_;
  std::shared_ptr<CapturedRecord> captured_;
};

}  // namespace gpuctl::softgpu
