#include "libgpuslice/driver.h"

#include <dlfcn.h>

#include <initializer_list>

namespace gpuslice {

namespace {

using Dlsym = void* (*)(void*, const char*);

// dlvsym is not interposed, so it leads to the C library's dlsym whatever its version there is.
Dlsym find_dlsym() {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    if (void* found = dlvsym(RTLD_NEXT, "dlsym", version)) return reinterpret_cast<Dlsym>(found);
  }
  return nullptr;
}

Driver load() {
  Driver table;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return table;
  table.present = true;
#define X(name) table.name = reinterpret_cast<decltype(table.name)>(real_dlsym(library, #name));
#include "libgpuslice/driver_functions.inc"
#undef X
  return table;
}

}  // namespace

void* real_dlsym(void* handle, const char* name) {
  static const Dlsym found = find_dlsym();
  return found ? found(handle, name) : nullptr;
}

const Driver& driver() {
  static const Driver table = load();
  return table;
}

}  // namespace gpuslice
