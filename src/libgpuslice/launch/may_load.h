// Whether libgpuslice may load code now, at a time that the program did not choose.
//
// Loading code blocks in the driver until the device is idle. Without libgpuslice the program would load nothing here.
// So nothing may be on the GPU that waits for the loading thread, or for what that thread does next.
#pragma once

namespace gpuslice {

/// True if none of the program's streams is known to wait for the host and no capture is under way.
bool nothing_waits();

/// True if, in addition, no launch of the program is known to be on the GPU. Asks the driver, with calls that do not
/// block.
bool may_load_now();

}  // namespace gpuslice
