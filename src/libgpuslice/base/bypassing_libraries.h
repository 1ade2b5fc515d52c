// Bypassing libraries: NVIDIA libraries that use the program's streams through other functions of the driver than those
// of cuda.h, so that libgpuslice does not see when (joining.h): video codecs, ray tracing, optical flow, graphics. And
// libraries that the program loads with RTLD_DEEPBIND, which find the driver's functions, and the C library's dlsym,
// before ours.
#pragma once

#include <atomic>
#include <cstdint>

namespace gpuslice {

/// How long a library may be loaded without being noticed. It takes longer to start, and then to use a stream.
inline constexpr std::uint64_t kUnnoticedNs = 100'000;

/// Whether one of them is loaded. `now_ns`: CLOCK_MONOTONIC, or a little earlier. A look takes the dynamic linker's
/// lock for a moment, but none that is held while libraries start. Any thread.
bool bypassing_library_loaded(std::uint64_t now_ns);

/// A library is about to be loaded so: from now on one is loaded. Any thread, from the first moment of the process.
void note_deep_binding();
/// Called then, before the library can call anything.
extern std::atomic<void (*)()> g_before_deep_binding;

}  // namespace gpuslice
