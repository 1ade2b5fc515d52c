// Reaches the C library and the driver past the wrappers. Every library of the process may call dlsym before anything
// of ours is initialised, and a sanitizer's runtime does so from its own start. So nothing here is built with a
// sanitizer (meson.build), and nothing has a constructor or a static variable that is initialised at run time.
#include "libgpuslice/base/dlsym.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <initializer_list>

namespace gpuslice {

namespace {

using Dlsym = void* (*)(void*, const char*);
using Dlopen = void* (*)(const char*, int);

constinit std::atomic<Dlsym> g_dlsym{nullptr};
constinit std::atomic<void*> g_libcuda{nullptr};

// The C library's own function. dlvsym is not wrapped, and passes over what a tool has of the same name without a
// version. The symbol's version depends on the C library.
void* of_c_library(const char* name) {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    if (void* found = dlvsym(RTLD_NEXT, name, version)) return found;
  }
  return nullptr;
}

}  // namespace

void* real_dlsym(void* handle, const char* name) {
  Dlsym found = g_dlsym.load(std::memory_order_relaxed);
  if (!found) {
    found = reinterpret_cast<Dlsym>(of_c_library("dlsym"));  // the same in every thread
    g_dlsym.store(found, std::memory_order_relaxed);
  }
  return found ? found(handle, name) : nullptr;
}

void* own_library() {
  static constinit std::atomic<void*> own{nullptr};
  if (void* known = own.load(std::memory_order_relaxed)) return known;
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<const void*>(&own_library), &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0)
    return nullptr;
  own.store(map, std::memory_order_relaxed);
  return map;
}

void* libcuda() {
  void* library = g_libcuda.load(std::memory_order_relaxed);
  if (!library) {
    // A tool's dlopen gives, for the driver's name, the library whose cuInit programs find: ours.
    const auto open = reinterpret_cast<Dlopen>(of_c_library("dlopen"));
    if (open) library = open("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // never closed, so twice does no harm
    g_libcuda.store(library, std::memory_order_relaxed);
  }
  return library;
}

void* libcuda_function(const char* name) {
  void* library = libcuda();
  return library ? real_dlsym(library, name) : nullptr;
}

}  // namespace gpuslice
