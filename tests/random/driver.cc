#include "driver.h"

#include <dlfcn.h>

namespace gpuctl::random_kernels {
namespace {

Driver load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) throw Failure(std::string("no CUDA driver: ") + dlerror());
  Driver driver;
#define X(name)                                                             \
  driver.name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name)); \
  if (driver.name == nullptr) throw Failure("the CUDA driver has no " #name);
  RANDOM_KERNELS_DRIVER_FUNCTIONS(X)
#undef X
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

}  // namespace gpuctl::random_kernels
