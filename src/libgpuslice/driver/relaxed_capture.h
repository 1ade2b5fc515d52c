// For driver calls of our own at a moment of the program's choice: one that some capture forbids would end that
// capture.
#pragma once

#include "libgpuslice/driver/driver.h"

namespace gpuslice {

/// While it lives no capture, of whichever thread, forbids this thread a call that has nothing to do with streams.
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
