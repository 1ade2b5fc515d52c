// Past the interposer, to the C library and the driver. Every library of the process may call dlsym before anything of
// ours is set up, a sanitizer's runtime from its own beginning: so nothing here is built with a sanitizer
// (meson.build), and nothing has a constructor or a guarded static variable.
#include "libgpuslice/driver/dlsym.h"

#include <dlfcn.h>

#include <atomic>

namespace gpuslice {

namespace {

using Dlsym = void* (*)(void*, const char*);

constinit std::atomic<Dlsym> g_dlsym{nullptr};
constinit std::atomic<void*> g_libcuda{nullptr};

// dlvsym is not interposed, so it leads to the C library's dlsym whatever its version there is.
Dlsym find_dlsym() {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    if (void* found = dlvsym(RTLD_NEXT, "dlsym", version)) return reinterpret_cast<Dlsym>(found);
  }
  return nullptr;
}

}  // namespace

void* real_dlsym(void* handle, const char* name) {
  Dlsym found = g_dlsym.load(std::memory_order_relaxed);
  if (!found) {
    found = find_dlsym();  // the same in every thread
    g_dlsym.store(found, std::memory_order_relaxed);
  }
  return found ? found(handle, name) : nullptr;
}

void* libcuda() {
  void* library = g_libcuda.load(std::memory_order_relaxed);
  if (!library) {
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // never closed, so it may as well be opened twice
    g_libcuda.store(library, std::memory_order_relaxed);
  }
  return library;
}

void* libcuda_function(const char* name) {
  void* library = libcuda();
  return library ? real_dlsym(library, name) : nullptr;
}

}  // namespace gpuslice
