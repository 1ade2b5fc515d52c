// How many hardware queues the driver gives this program.
#pragma once

namespace gpuslice {

/// The driver puts each program's streams into this many queues by turns. What waits in one queue holds up all streams
/// behind it.
unsigned hardware_queues();

}  // namespace gpuslice
