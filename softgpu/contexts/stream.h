// Streams: queues of operations, each run in order by its own thread.
//
// The rules between streams are CUDA's. An operation in the legacy default stream waits for all earlier ones in the
// blocking streams of its context, and later operations of blocking streams wait for it. Each operation has a list of
// dependencies that is fixed when it is submitted. So an operation waits only for older ones, and there is no cycle of
// waits.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "softgpu/contexts/green.h"
#include "softgpu/contexts/work_queue.h"
#include "softgpu/table/device_limits.h"
#include "softgpu/table/table_layout.h"

namespace gpuctl::softgpu {

class Context;
class Stream;

/// "All operations of that stream up to this number."
struct StreamPoint {
  std::shared_ptr<Stream> stream;
  std::uint64_t number = 0;
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  enum class Kind {
    kBlocking,     ///< waits for the legacy stream and is waited for by it
    kNonBlocking,  ///< CU_STREAM_NON_BLOCKING
    kLegacy,       ///< the legacy default stream of its context
  };

  /// `queue` null: the stream has its own. `green` null: its kernels run on all SMs.
  Stream(Context* context, Kind kind, int priority, std::uint64_t id, std::shared_ptr<WorkQueue> queue,
         std::shared_ptr<GreenContext> green = nullptr)
      : context_(context), kind_(kind), id_(id), queue_(std::move(queue)), green_(std::move(green)) {
    set_priority(priority);
  }

  Context* context() const { return context_; }
  Kind kind() const { return kind_; }
  /// The error that every call that needs the stream must return if its context, or its green context, is no longer
  /// usable.
  CUresult error() const;

  const std::shared_ptr<GreenContext>& green() const { return green_; }
  /// SMs that kernels launched into it may run on (bit = SM).
  std::uint64_t allowed_sms() const { return green_ == nullptr ? kAnySm : green_->resource.sms; }

  /// As CUDA numbers it: lower is more urgent. It applies to work issued from now on, and is clamped to the range of
  /// the device.
  int priority() const { return priority_.load(); }
  void set_priority(int priority) { priority_.store(std::clamp(priority, kGreatestPriority, kLeastPriority)); }

  /// Attributes that only tune speed. They have no effect here, but are kept. Empty: never set.
  std::optional<CUstreamAttrValue> hint(CUstreamAttrID id) const;
  void set_hint(CUstreamAttrID id, const CUstreamAttrValue& value);
  void copy_hints(const Stream& from);

  std::uint64_t id() const { return id_; }

  /// Appends an operation. It runs when all earlier ones and `after` are over. Returns its number, at least 1, or 0 if
  /// the system has no thread left for the stream (the first call starts the thread). `operation` must not throw.
  /// `waits`: it waits for something, and holds up its hardware queue until it has ended.
  std::uint64_t submit(std::function<void()> operation, std::vector<StreamPoint> after = {}, bool waits = false);

  /// Number of the last operation submitted, 0 if there was none.
  std::uint64_t last() const;

  bool finished(std::uint64_t number) const;
  /// For an operation that runs: `then` is called when it counts as complete, before anybody can see that. So whoever
  /// sees an event as passed sees its stream as done, if nothing came behind.
  void at_completion(std::function<void()> then) { at_completion_ = std::move(then); }
  void wait(std::uint64_t number) const;

  /// The same, but returns false soon after the context was stopped if the operation is not over then: a host function
  /// may still run.
  bool wait_unless_stopped(std::uint64_t number) const;

  /// No more operations will come: the thread ends after the queued ones.
  void close();

 private:
  struct Operation {
    std::function<void()> run;
    std::vector<StreamPoint> after;
    std::uint64_t place;  ///< in the hardware queue, if there is one
    bool waits;
  };
  void work();

  Context* const context_;
  const Kind kind_;
  std::atomic<int> priority_;
  const std::uint64_t id_;
  const std::shared_ptr<WorkQueue> queue_;
  const std::shared_ptr<GreenContext> green_;

  mutable std::mutex mutex_;
  std::condition_variable queued_;            ///< wakes the stream's thread
  mutable std::condition_variable finished_;  ///< wakes the waiting threads
  std::deque<Operation> operations_;
  std::map<CUstreamAttrID, CUstreamAttrValue> hints_;
  std::uint64_t submitted_ = 0;
  std::uint64_t completed_ = 0;
  std::function<void()> at_completion_;  ///< of the operation that runs
  bool started_ = false;
  bool closed_ = false;
};

}  // namespace gpuctl::softgpu
