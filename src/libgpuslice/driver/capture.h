// What the launch path asks about a stream.
#pragma once

#include <cuda.h>

namespace gpuslice {

/// True while a launch into `stream` would become a graph node. Costs one load unless some capture is under way.
bool capturing(CUstream stream);

/// Stream 0 spelled out: the legacy or the per-thread default stream, as the called variant means it.
CUstream explicit_stream(CUstream stream, bool per_thread);

/// True while some capture is under way.
bool capturing_anything();

/// True as a condition while no capture is under way, and none begins before it goes: a query about a stream that
/// captures would end the capture.
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
