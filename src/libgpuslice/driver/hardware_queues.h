// How many hardware queues the driver gives this program.
#pragma once

namespace gpuslice {

/// Of these the driver puts work into by turns, for each program; what waits in one holds up all streams behind it.
unsigned hardware_queues();

}  // namespace gpuslice
