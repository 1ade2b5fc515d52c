// Names to functions, past the interposer. Any thread, from the first moment of the process.
#pragma once

namespace gpuslice {

/// dlsym of the C library, not ours.
void* real_dlsym(void* handle, const char* name);

/// libcuda.so.1, opened at the first call and never closed; null when there is none.
void* libcuda();

/// A function of libcuda under its exported name; null when there is none.
void* libcuda_function(const char* name);

}  // namespace gpuslice
