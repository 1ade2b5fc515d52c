// Bypassing libraries: NVIDIA libraries that use the program's streams through other functions of the driver than those
// of cuda.h, so that libgpuslice does not see when (joining.h): video codecs, ray tracing, optical flow, graphics.
#pragma once

namespace gpuslice {

/// Whether one of them is loaded. Takes no lock that is held while libraries start.
bool bypassing_library_loaded();

}  // namespace gpuslice
