// Bypassing libraries: NVIDIA libraries that use the program's streams through other functions of the driver than those
// of cuda.h, so that libgpuslice does not see when (joining.h): video codecs, ray tracing, optical flow, graphics.
#pragma once

#include <cstdint>

namespace gpuslice {

/// How long a library may be loaded without being noticed. It takes longer to start, and then to use a stream.
inline constexpr std::uint64_t kUnnoticedNs = 100'000;

/// Whether one of them is loaded. `now_ns`: CLOCK_MONOTONIC, or a little earlier. A look takes the dynamic linker's
/// lock for a moment, but none that is held while libraries start. Any thread.
bool bypassing_library_loaded(std::uint64_t now_ns);

}  // namespace gpuslice
