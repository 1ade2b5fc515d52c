// Finds functions by name, past the wrappers. Any thread, from the first moment of the process.
#pragma once

namespace gpuslice {

/// dlsym of the C library, not ours.
void* real_dlsym(void* handle, const char* name);

/// What dlopen returns for this library.
void* own_library();

/// libcuda.so.1. The first call opens it; it is never closed. Null if there is none.
void* libcuda();

/// The function of libcuda with this exported name; null if there is none.
void* libcuda_function(const char* name);
/// The same, for older functions that cuda.h no longer declares, with their type.
template <class Function>
Function older(const char* name) {
  return reinterpret_cast<Function>(libcuda_function(name));
}

}  // namespace gpuslice
