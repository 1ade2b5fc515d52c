// How many hardware queues the driver gives this program.
#pragma once

namespace gpuslice {

/// The driver distributes each program's streams over this many queues round-robin. What waits in one queue holds up
/// all streams behind it.
unsigned hardware_queues();

}  // namespace gpuslice
