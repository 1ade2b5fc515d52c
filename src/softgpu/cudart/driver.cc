#include "softgpu/cudart/driver.h"

#include <dlfcn.h>

#include <atomic>
#include <mutex>

namespace gpuctl::softgpu::cudart {
namespace {

DriverFunctions open_driver() {
  DriverFunctions functions;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return functions;
  using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  const auto get = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (get == nullptr) return functions;
  functions.found = true;
  const auto take = [&](const char* name, void** member) {
    if (get(name, member, CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, nullptr) != CUDA_SUCCESS || *member == nullptr) {
      functions.found = false;
    }
  };
#define SOFTGPU_TAKE(name) take(#name, reinterpret_cast<void**>(&functions.p_##name));
  SOFTGPU_CUDART_FUNCTIONS(SOFTGPU_TAKE)
#undef SOFTGPU_TAKE
  return functions;
}

/// Initialises the driver; the result counts for the whole process.
CUresult start() {
  if (!driver().found) return CUDA_ERROR_NO_DEVICE;
  return DRIVER(cuInit)(0);
}

std::atomic<unsigned> resets{0};
thread_local unsigned seen_resets = 0;

CUcontext primary_context(CUresult* result) {
  static std::mutex mutex;
  static CUcontext context = nullptr;
  static bool retained = false;
  const std::lock_guard lock(mutex);
  int active = 0;
  unsigned flags = 0;
  *result = DRIVER(cuDevicePrimaryCtxGetState)(0, &flags, &active);
  if (*result != CUDA_SUCCESS) return nullptr;
  if (!retained || active == 0) {
    *result = DRIVER(cuDevicePrimaryCtxRetain)(&context, 0);
    retained = *result == CUDA_SUCCESS;
  }
  return context;
}

}  // namespace

const DriverFunctions& driver() {
  static const DriverFunctions* functions = new DriverFunctions(open_driver());  // for exit handlers, never destroyed
  return *functions;
}

CUresult enter() {
  static const CUresult started = start();
  unsigned flags = 0;
  if (started != CUDA_SUCCESS) return started;
  CUcontext current = nullptr;
  const CUresult got = DRIVER(cuCtxGetCurrent)(&current);
  if (got != CUDA_SUCCESS) return got;
  const unsigned reset = resets.load();
  const bool stale = seen_resets != reset && DRIVER(cuCtxGetFlags)(&flags) == CUDA_ERROR_CONTEXT_IS_DESTROYED;
  seen_resets = reset;
  if (current != nullptr && !stale) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  const CUcontext primary = primary_context(&result);
  return result == CUDA_SUCCESS ? DRIVER(cuCtxSetCurrent)(primary) : result;
}

CUresult reset_device() {
  const CUresult entered = enter();
  const CUresult result = entered == CUDA_SUCCESS ? DRIVER(cuDevicePrimaryCtxReset)(0) : entered;
  if (result == CUDA_SUCCESS) ++resets;
  return result;
}

}  // namespace gpuctl::softgpu::cudart
