// What the launch path asks about streams and captures.
#pragma once

#include <cuda.h>

namespace gpuslice {

/// Whether a launch into `stream` would become a graph node. Costs one load unless a capture is under way.
bool capturing(CUstream stream);

/// The handle of the legacy or the per-thread default stream if `stream` is 0, depending on the called variant; else
/// `stream`.
inline CUstream explicit_stream(CUstream stream, bool per_thread) {
  if (stream) return stream;
  return per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

/// Whether a capture is under way.
bool capturing_anything();

/// True as a condition if no capture is under way. Then none begins before this object is destroyed. A query about a
/// stream that captures would end the capture.
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
