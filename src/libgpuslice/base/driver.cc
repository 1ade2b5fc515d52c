#include "libgpuslice/base/driver.h"

#include "libgpuslice/base/dlsym.h"
#include "libgpuslice/base/launch_words.h"
#include "libgpuslice/base/look_gate.h"
#include "libgpuslice/base/own_threads.h"

namespace gpuslice {

namespace {

Driver load() {
  Driver table;
  void* library = libcuda();
  if (!library) return table;
  table.present = true;
#define X(name) table.name = reinterpret_cast<decltype(table.name)>(real_dlsym(library, #name));
#include "libgpuslice/base/driver_functions.inc"
#undef X
  g_launch_words.launch.store(table.cuLaunchKernel, std::memory_order_release);
  g_launch_words.launch_ex.store(table.cuLaunchKernelEx, std::memory_order_release);
  return table;
}

const Driver& exported() {
  static const Driver table = load();
  return table;
}

/// `call` has the type of the function, and calls it when a look is possible.
template <auto function>
struct Look;

template <class... Arguments, CUresult (*Driver::*function)(Arguments...)>
struct Look<function> {
  static CUresult call(Arguments... arguments) {
    return make_look([&] { return (exported().*function)(arguments...); });
  }
};

Driver with_looks() {
  Driver table = exported();
#define X(name) \
  if (table.name) table.name = &Look<&Driver::name>::call;
  X(cuEventElapsedTime)
  X(cuEventQuery)
  X(cuMemGetInfo_v2)  // answers with an error then
  X(cuStreamQuery)
  X(cuStreamSynchronize)
#undef X
  return table;
}

const Driver& of_all_threads() {
  static const Driver table = with_looks();
  return table;
}

/// `call` has the type of the function, and calls it unless the time of own calls is over.
template <auto function>
struct Timely;

template <class... Arguments, CUresult (*Driver::*function)(Arguments...)>
struct Timely<function> {
  static CUresult call(Arguments... arguments) {
    return own_calls_are_over() ? CUDA_ERROR_DEINITIALIZED : (of_all_threads().*function)(arguments...);
  }
};

Driver timely() {
  Driver table = of_all_threads();
#define X(name) \
  if (table.name) table.name = &Timely<&Driver::name>::call;
#include "libgpuslice/base/driver_functions.inc"
#undef X
  return table;
}

const Driver& of_own_threads() {
  static const Driver table = timely();
  return table;
}

}  // namespace

const Driver& driver() {
  return is_own_thread() ? of_own_threads() : of_all_threads();
}

}  // namespace gpuslice
