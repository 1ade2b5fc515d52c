// Libraries of NVIDIA's that hand the program's streams to the driver by other ways than the functions of cuda.h, so
// that we do not see when (joining.h): video codecs, ray tracing, optical flow, graphics.
#pragma once

namespace gpuslice {

/// Whether one of them is loaded. Takes no lock that is held while libraries start.
bool outsiders_loaded();

}  // namespace gpuslice
