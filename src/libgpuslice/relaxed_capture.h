// For driver calls of our own at a moment of the program's choice: one that some capture forbids would end that
// capture.
#pragma once

#include "libgpuslice/driver.h"

namespace gpuslice {

/// While it lives no capture, of whichever thread, forbids this thread a call that has nothing to do with streams.
class RelaxedCapture {
 public:
  RelaxedCapture() { exchange(); }
  ~RelaxedCapture() { exchange(); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  void exchange() {
    if (driver().cuThreadExchangeStreamCaptureMode) driver().cuThreadExchangeStreamCaptureMode(&mode_);
  }
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace gpuslice
