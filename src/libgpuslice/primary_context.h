// Primary contexts that live a little longer than the program wants them to.
#pragma once

#include <cuda.h>

namespace gpuslice {

/// After a use of the primary context of `device` was given back: forgets what was kept about it if that was the last.
/// In hooks_memory.cc.
void after_primary_release(CUdevice device);

/// Keeps `context` alive if it is the primary one of the device: then the program's giving it back does not end it.
class PrimaryHold {
 public:
  PrimaryHold(CUcontext context, CUdevice device);
  ~PrimaryHold();
  PrimaryHold(const PrimaryHold&) = delete;
  PrimaryHold& operator=(const PrimaryHold&) = delete;

 private:
  CUdevice device_;
  bool held_ = false;
};

}  // namespace gpuslice
