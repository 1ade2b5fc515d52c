// For our own driver calls at a time that the program chose. A capture may forbid such a call, and the call would then
// end the capture.
#pragma once

#include "libgpuslice/driver/driver.h"

namespace gpuslice {

/// While an object of this class lives, no capture of any thread forbids this thread calls that do not concern streams.
class RelaxedCapture {
 public:
  RelaxedCapture() : exchanged_(exchange()) {}
  ~RelaxedCapture() {
    if (exchanged_) exchange();
  }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  bool exchange() {
    const auto call = driver().cuThreadExchangeStreamCaptureMode;
    return call && call(&mode_) == CUDA_SUCCESS;
  }
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool exchanged_;
};

}  // namespace gpuslice
