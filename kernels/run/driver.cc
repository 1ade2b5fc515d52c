#include "kernels/run/driver.h"

#include <dlfcn.h>

namespace gpuctl::bench {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw Failure(std::string(kLibrary) + " has no " + name);
}

Driver load() {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr)
    throw Failure(std::string("no CUDA driver: ") + dlerror() + " (gpuctl run has the software GPU's)");
  Driver driver;
#define X(name) find(library, #name, driver.name);
  GPUSLICE_BENCH_DRIVER_FUNCTIONS(X)
#undef X
  find(library, "cuEventElapsedTime", driver.cuEventElapsedTime);
  return driver;
}

}  // namespace

const Driver& driver() {
  static const Driver loaded = load();
  return loaded;
}

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  driver().cuGetErrorName(result, &name);
  throw Failure(std::string(call) + ": " + (name != nullptr ? name : "error " + std::to_string(result)));
}

}  // namespace gpuctl::bench
