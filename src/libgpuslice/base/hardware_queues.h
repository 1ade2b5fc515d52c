// How many hardware queues the driver gives this program.
#pragma once

namespace gpuslice {

/// The variable by which a program says how many.
inline constexpr char kHardwareQueues[] = "CUDA_DEVICE_MAX_CONNECTIONS";

/// How many queues MPS makes for a program that does not say.
inline constexpr unsigned kUsualUnderMps = 2;

/// What the program says by itself, as the driver reads it; 0: nothing.
unsigned own_hardware_queues();

/// gpuctld said at the program's start how many it has (GetMpsPercentage of io.gpuctl). Before the first
/// hardware_queues().
void set_hardware_queues(unsigned queues);

/// The driver distributes each program's streams over this many queues round-robin. What waits in one queue holds up
/// all streams behind it. After the driver's cuInit; any thread.
unsigned hardware_queues();

}  // namespace gpuslice
