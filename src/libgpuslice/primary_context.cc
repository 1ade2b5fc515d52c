#include "libgpuslice/primary_context.h"

#include "libgpuslice/driver.h"

namespace gpuslice {

PrimaryHold::PrimaryHold(CUcontext context, CUdevice device) : device_(device) {
  const Driver& d = driver();
  unsigned flags = 0;
  int active = 0;
  CUcontext primary = nullptr;
  if (!d.cuDevicePrimaryCtxGetState || !d.cuDevicePrimaryCtxRetain || !d.cuDevicePrimaryCtxRelease_v2 ||
      d.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || !active ||
      d.cuDevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS) {
    return;
  }
  held_ = primary == context;
  if (!held_) d.cuDevicePrimaryCtxRelease_v2(device);
}

PrimaryHold::~PrimaryHold() {
  if (held_ && driver().cuDevicePrimaryCtxRelease_v2(device_) == CUDA_SUCCESS) after_primary_release(device_);
}

}  // namespace gpuslice
