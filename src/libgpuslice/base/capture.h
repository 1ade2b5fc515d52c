// The captures of the program: what begins and ends them, and what the launch path asks about them.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "libgpuslice/base/launch_words.h"
#include "libgpuslice/base/stream_key.h"

namespace gpuslice {

/// Whether a launch into `stream` would become a graph node. Costs one load unless a capture is under way.
bool capturing(CUstream stream);

/// The handle of the legacy or the per-thread default stream if `stream` is 0, depending on the called variant; else
/// `stream`.
inline CUstream explicit_stream(CUstream stream, bool per_thread) {
  if (stream) return stream;
  return per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

/// The captures that are under way, each by the stream that it began in. A capture ends with its call, but also with
/// its stream, its context, or, in a per-thread default stream, its thread. Any thread.
class Captures {
 public:
  /// The instance of this process; never destroyed.
  static Captures& get();

  /// A capture is about to begin in the stream. While one is under way no lane stays open (streams/joining.h), but one
  /// that is open already has not joined yet when this returns. Returns what refused() takes.
  std::uint64_t begins(CUstream stream);
  void refused(std::uint64_t capture);
  /// The program ended what was captured in the stream.
  void ended(CUstream stream);
  void destroyed(CUstream stream);
  void forget(CUcontext context);
  void forget_after_fork();

  bool any() const { return g_launch_words.captures.load(std::memory_order_relaxed) > 0; }

 private:
  friend class NoCapture;
  struct One {
    std::uint64_t number;
    CUcontext context;
    StreamKey key;
  };
  struct ThreadEnd;

  template <class Which>
  void erase(Which which);

  std::shared_mutex beginning_;  ///< held exclusively while a capture begins
  std::mutex mutex_;             ///< guards what follows
  std::vector<One> captures_;
  std::uint64_t numbers_ = 0;
};

/// Whether a capture is under way.
inline bool capturing_anything() {
  return g_launch_words.captures.load(std::memory_order_relaxed) > 0;
}

/// True as a condition if no capture is under way. Then none begins before this object is destroyed. A query about a
/// stream that captures would end the capture. A thread has one at a time.
class NoCapture {
 public:
  NoCapture();
  ~NoCapture();
  NoCapture(const NoCapture&) = delete;
  NoCapture& operator=(const NoCapture&) = delete;
  explicit operator bool() const { return none_; }

 private:
  bool none_;
};

}  // namespace gpuslice
