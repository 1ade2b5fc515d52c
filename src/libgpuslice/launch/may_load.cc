#include "libgpuslice/launch/may_load.h"

#include "libgpuslice/base/capture.h"
#include "libgpuslice/streams/quiesce.h"
#include "libgpuslice/streams/waiting_streams.h"

namespace gpuslice {

bool nothing_waits() {
  return !capturing_anything() && WaitingStreams::get().none();
}

bool may_load_now() {
  for (LaunchSource* source : launch_sources()) {
    if (!source->idle()) return false;
  }
  return nothing_waits();
}

}  // namespace gpuslice
