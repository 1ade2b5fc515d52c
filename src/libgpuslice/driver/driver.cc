#include "libgpuslice/driver/driver.h"

#include "libgpuslice/driver/dlsym.h"

namespace gpuslice {

namespace {

Driver load() {
  Driver table;
  void* library = libcuda();
  if (!library) return table;
  table.present = true;
#define X(name) table.name = reinterpret_cast<decltype(table.name)>(real_dlsym(library, #name));
#include "libgpuslice/driver/driver_functions.inc"
#undef X
  return table;
}

}  // namespace

const Driver& driver() {
  static const Driver table = load();
  return table;
}

}  // namespace gpuslice
