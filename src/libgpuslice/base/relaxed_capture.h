// For our own driver calls at a time that the program chose. A capture may forbid such a call, and the call would then
// end the capture.
#pragma once

#include "libgpuslice/base/driver.h"

namespace gpuslice {

/// Makes this thread's mode of captures `mode`, which receives the mode before.
inline bool exchange_capture_mode(CUstreamCaptureMode& mode) {
  const auto call = driver().cuThreadExchangeStreamCaptureMode;
  return call && call(&mode) == CUDA_SUCCESS;
}

/// From now on no capture of any thread forbids this thread calls that do not concern streams. For the library's own
/// threads: when such a thread is over, it must not call the driver to undo this.
inline void relax_captures() {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  exchange_capture_mode(mode);
}

/// While an object of this class lives, no capture of any thread forbids this thread calls that do not concern streams.
class RelaxedCapture {
 public:
  RelaxedCapture() : exchanged_(exchange_capture_mode(mode_)) {}
  ~RelaxedCapture() {
    if (exchanged_) exchange_capture_mode(mode_);
  }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool exchanged_;
};

}  // namespace gpuslice
