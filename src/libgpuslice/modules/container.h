// The two kinds of containers in which the driver keeps a loaded image, modules and libraries, behind one interface.
// Handles are untyped: a CUmodule with its CUfunctions, or a CUlibrary with its CUkernels.
#pragma once

#include <cuda.h>

namespace gpuslice {

/// The program's options for a load. `count` for the driver's compiler, and `library_count` for a library. All arrays
/// are the program's and may be null.
struct LoadOptions {
  CUjit_option* options = nullptr;
  void** values = nullptr;
  unsigned count = 0;
  CUlibraryOption* library_options = nullptr;
  void** library_values = nullptr;
  unsigned library_count = 0;
};

/// The driver's functions for one kind of container. Tests have containers of their own.
struct Container {
  bool is_library;  ///< belongs to no context, and its entries are CUkernels
  /// Loads other code than the program's, with the program's options. The driver keeps no pointer to the code.
  CUresult (*load)(void** handle, const void* code, const LoadOptions& options);
  CUresult (*unload)(void* handle);
  CUresult (*get_entry)(void** entry, void* handle, const char* name);
  CUresult (*count_entries)(unsigned* count, void* handle);
  CUresult (*enumerate_entries)(void** entries, unsigned count, void* handle);
};

extern const Container kModule, kLibrary;

}  // namespace gpuslice
