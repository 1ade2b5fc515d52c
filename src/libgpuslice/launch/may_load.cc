#include "libgpuslice/launch/may_load.h"

#include "libgpuslice/driver/capture.h"
#include "libgpuslice/streams/quiesce.h"
#include "libgpuslice/streams/waiting_streams.h"

namespace gpuslice {

bool nothing_waits() {
  const NoCapture none_begins;  // a query about a stream that is being captured would end the capture
  return none_begins && WaitingStreams::get().none();
}

bool may_load_now() {
  for (LaunchSource* source : launch_sources()) {
    if (!source->idle()) return false;
  }
  return nothing_waits();
}

}  // namespace gpuslice
