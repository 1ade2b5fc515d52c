// A launch in original form.
#pragma once

#include <cuda.h>

#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/image/kernels.h"
#include "libgpuslice/launch/context.h"
#include "libgpuslice/launch/repeated.h"
#include "libgpuslice/streams/joining.h"
#include "libgpuslice/streams/opaque.h"

namespace gpuslice {

/// Launches a kernel in original form, when and where its slice allows it to start: `plain(stream)` makes the driver's
/// call. `context`, which must be current, and `kernel` may be null.
template <class Plain>
CUresult launch_opaque(Context* context, KernelInfo* kernel, CUstream stream, const Opaque::Launch& launch,
                       Plain plain) {
  const bool capture = capturing_anything();
  if (capture) context = nullptr;
  if (kernel)
    kernel->unlimited = context ? nullptr : capture ? "a stream was being captured" : "its context is not managed";
  if (!context) {
    const StreamCall in_flight(stream);  // with a capture too: it may only be about to have all lanes join
    return plain(stream);
  }
  Opaque::Turn turn(context->opaque(), stream, launch);
  CUresult result = plain(turn.stream());
  const bool refused = result != CUDA_SUCCESS && turn.confined(), in_pairs = refused && turn.in_pairs();
  if (in_pairs && turn.move_to_groups(context->opaque(), launch)) result = plain(turn.stream());
  if (refused && result != CUDA_SUCCESS) result = plain(turn.anywhere("it does not run on those granted"));
  // A launch that the driver refuses everywhere has an error of its own.
  if (in_pairs && result == CUDA_SUCCESS) context->opaque().refused_in_pairs();
  if (result != CUDA_SUCCESS) {
    turn.give_up();
    debug("launch of %s in its original form refused: %d", launch.name, result);
  }
  if (result == CUDA_SUCCESS && !refused && turn.confined() && launch.decided.page && kernel && launch.cluster == 1)
    RepeatedLaunches::note(*context, turn.lane(), launch, turn.suspect());
  if (kernel) {
    // The launch was counted, and perhaps reported, before its turn came.
    const bool elsewhere = kernel->confined_sms.exchange(turn.sms()) != turn.sms();
    const bool otherwise = kernel->anywhere.exchange(turn.why_anywhere()) != turn.why_anywhere();
    if (elsewhere || otherwise) kernel->changed = true;
  }
  return result;
}

}  // namespace gpuslice
