// Whether code may be loaded now, at a moment that the program did not choose.
//
// Loading code blocks in the driver until the device is idle. Without libgpuslice the program would load nothing here:
// so nothing of it may be on the GPU that waits for the thread that loads, or for what that thread does next.
#pragma once

namespace gpuslice {

/// None of the program's streams is known to wait for the host, and no capture is under way.
bool nothing_waits();

/// No launch of the program is known to be on the GPU, and none of its streams to wait. Asks the driver, with calls
/// that do not block.
bool may_load_now();

}  // namespace gpuslice
