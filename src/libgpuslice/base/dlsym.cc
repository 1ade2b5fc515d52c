// Reaches the C library and the driver past the wrappers. Every library of the process may call dlsym before anything
// of ours is initialised, and a sanitizer's runtime does so from its own start. So nothing here is built with a
// sanitizer (meson.build), and nothing has a constructor or a static variable that is initialised at run time.
#include "libgpuslice/base/dlsym.h"

#include <dlfcn.h>

#include <atomic>
#include <initializer_list>

namespace gpuslice {

namespace {

using Dlsym = void* (*)(void*, const char*);

constinit std::atomic<Dlsym> g_dlsym{nullptr};
constinit std::atomic<void*> g_libcuda{nullptr};

// dlvsym is not wrapped, so it finds the C library's dlsym. The symbol's version depends on the C library.
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
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // never closed, so opening it twice does no harm
    g_libcuda.store(library, std::memory_order_relaxed);
  }
  return library;
}

void* libcuda_function(const char* name) {
  void* library = libcuda();
  return library ? real_dlsym(library, name) : nullptr;
}

}  // namespace gpuslice
