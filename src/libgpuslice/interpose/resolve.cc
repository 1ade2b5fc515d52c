// Answers calls of our dlsym and sees those of dlopen (dlsym_*.S). Every library of the process may call them before
// anything of ours is initialised, so this is built like base/dlsym.cc.
#include <dlfcn.h>

#include "libgpuslice/base/bypassing_libraries.h"
#include "libgpuslice/base/dlsym.h"
#include "libgpuslice/image/nvrtc.h"
#include "libgpuslice/interpose/hooks.h"

extern "C" {

/// The C library's dlsym, for dlsym_*.S. gpuslice_resolve() sets it before its first use, since constructors of other
/// libraries may call dlsym.
__attribute__((visibility("hidden"))) void* (*gpuslice_next_dlsym)(void*, const char*) = nullptr;

__attribute__((visibility("hidden"))) void* gpuslice_resolve(void* handle, const char* name) {
  if (!gpuslice_next_dlsym) {
    gpuslice_next_dlsym = reinterpret_cast<decltype(gpuslice_next_dlsym)>(gpuslice::real_dlsym(RTLD_NEXT, "dlsym"));
  }
  if (!name) return nullptr;
  const bool special = handle == RTLD_NEXT || handle == RTLD_DEFAULT;
  if (name[0] == 'n' && name[1] == 'v' && name[2] == 'r')
    return special ? nullptr : gpuslice::resolve_nvrtc(handle, name);
  if (name[0] != 'c' || name[1] != 'u') return nullptr;
  void* wrapper = gpuslice::find_hook(name);
  // To a program a tool may have given our library for libcuda (base/dlsym.cc).
  if (!wrapper && handle == gpuslice::own_library()) return gpuslice::libcuda_function(name);
  // A function that a library lacks must stay missing. This code cannot ask RTLD_NEXT and RTLD_DEFAULT on the program's
  // behalf, so it asks libcuda itself for them.
  if (!wrapper) return nullptr;
  void* real = special ? gpuslice::libcuda_function(name) : gpuslice::real_dlsym(handle, name);
  return real ? wrapper : nullptr;
}

__attribute__((visibility("hidden"))) void* (*gpuslice_next_dlopen)(const char*, int) = nullptr;

__attribute__((visibility("hidden"))) void gpuslice_look_at_dlopen(const char* path, int mode) {
  if (!gpuslice_next_dlopen) {
    gpuslice_next_dlopen = reinterpret_cast<decltype(gpuslice_next_dlopen)>(gpuslice::real_dlsym(RTLD_NEXT, "dlopen"));
  }
  if (path && (mode & RTLD_DEEPBIND)) gpuslice::note_deep_binding();
}

}  // extern "C"
