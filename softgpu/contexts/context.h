// A context: the streams of a program and the error that made it unusable, if there is one.
#pragma once

#include <cuda.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "softgpu/contexts/stream.h"
#include "softgpu/memory/device_memory.h"

namespace gpuctl::softgpu {

class Device;

/// Contexts are never freed: a handle stays good for an error message, and threads of their streams may outlast them.
class Context {
 public:
  Context(std::uint64_t id, unsigned flags, Device& device, const Memory& memory, std::size_t work_queues);

  Device& device() const { return device_; }
  std::uint64_t id() const { return id_; }
  std::atomic<unsigned>& flags() { return flags_; }  ///< CU_CTX_*

  /// CUDA_SUCCESS, or the error that every call in this context must return: a kernel faulted, or the context is gone.
  CUresult error() const { return error_.load(); }

  /// Makes the context unusable; the first reason counts. Running kernels end at the next check, and waits end.
  void fail(CUresult error);

  /// The same, but replaces an earlier reason: the context is destroyed, or the process exits.
  void end(CUresult error);

  /// True once fail() was called; for threads that run kernels or poll.
  const std::atomic<bool>& stopped() const { return stopped_; }

  /// A new stream, of a green context or of none. `priority` is clamped to the range of the device.
  std::shared_ptr<Stream> create_stream(Stream::Kind kind, int priority, std::shared_ptr<GreenContext> green = nullptr);

  /// Work already in the stream goes on; no new work may come.
  void remove_stream(const std::shared_ptr<Stream>& stream);

  std::shared_ptr<Stream> legacy_stream() { return legacy_; }
  std::shared_ptr<Stream> per_thread_stream();

  /// Submits to a stream of this context, in the order that the legacy default stream demands. Returns 0 if no thread
  /// is left.
  std::uint64_t submit(const std::shared_ptr<Stream>& stream, std::function<void()> operation, bool waits = false);

  /// Waits until all work submitted so far is over, or until soon after the context was stopped.
  void synchronize();

  /// Waits until all work submitted so far is over. In a stopped context, only the work that runs now is waited for.
  void drain();

  /// True if all work submitted so far is over.
  bool idle();

  /// True if all work submitted so far that the legacy default stream would wait for is over.
  bool legacy_idle();

  /// The memory that its kernels may access.
  const MemoryView& memory() const { return memory_; }

  /// Opens the memory of another context's device to kernels of this one, or closes it again.
  CUresult enable_peer(const Context& peer);
  CUresult disable_peer(const Context& peer);

  /// Ends all work and all streams. Work that has not begun never runs.
  void destroy();

 private:
  std::vector<StreamPoint> points(bool with_non_blocking);
  std::vector<StreamPoint> all_points();
  void forget_finished();
  std::shared_ptr<WorkQueue> queue_for(std::uint64_t stream_id) const;

  void open_peers();

  const std::uint64_t id_;
  std::atomic<unsigned> flags_;
  Device& device_;
  MemoryView memory_;
  std::atomic<CUresult> error_{CUDA_SUCCESS};
  std::atomic<bool> stopped_{false};
  std::vector<std::shared_ptr<WorkQueue>> queues_;  ///< empty: each stream has its own
  std::shared_ptr<Stream> legacy_;
  std::mutex mutex_;  ///< guards the members below, and the order of submission to the legacy stream and the others
  std::vector<std::shared_ptr<Stream>> streams_;  ///< all but the legacy one
  std::vector<StreamPoint> destroyed_;            ///< the last work of destroyed streams
  std::set<const Context*> peers_;
  std::uint64_t next_stream_id_ = 1;
};

/// The stack of current contexts of the calling thread.
std::vector<Context*>& context_stack();

}  // namespace gpuctl::softgpu
