// In which form a launch goes, by the mode that the daemon decided (ipc/mode.h): as workers, which this launches, or in
// its original form, which is then launched where Opaque puts it.
#pragma once

#include <cuda.h>

#include <optional>

#include "libgpuslice/launch/context.h"
#include "libgpuslice/streams/opaque.h"

namespace gpuslice {

/// A launch as the program asks for it.
struct AskedLaunch {
  CUfunction function = nullptr;
  LaunchConfig config;
  const CUlaunchAttribute* attributes = nullptr;
  unsigned count = 0;
  std::optional<int> priority;  ///< that it is to have instead of its stream's
  void** params = nullptr;
  void** extra = nullptr;
};

struct Form {
  std::optional<CUresult> result;  ///< the driver's answer: it is launched, or was refused, as workers
  Opaque::Launch original;         ///< else: how it goes in its original form
};

/// `context`, which must be current, and `kernel` may be null. May wait for a grant.
Form choose_form(Context* context, KernelInfo* kernel, AskedLaunch&& asked);

}  // namespace gpuslice
