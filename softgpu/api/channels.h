// The driver's channel group, a queue of work of the hardware, for those that watch what the driver asks of its kernel
// module.
#pragma once

namespace gpuctl::softgpu {

/// SOFTGPU_CHANNELS=1: asks the kernel module for a channel group, as a driver does. There is no such module: a test
/// puts one in place of the C library's ioctl, which calls softgpu_set_turn() when it is told a time slice.
void make_channel_group();

}  // namespace gpuctl::softgpu

/// How long turns of this process's context last on all devices, in microseconds; 0: the usual time.
extern "C" void softgpu_set_turn(unsigned us);
