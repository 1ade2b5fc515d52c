#include "softgpu/cudart/driver.h"

#include <dlfcn.h>

#include <atomic>
#include <map>
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
thread_local int chosen_device = 0;

}  // namespace

const DriverFunctions& driver() {
  static const DriverFunctions* functions = new DriverFunctions(open_driver());  // for exit handlers, never destroyed
  return *functions;
}

CUresult begin() {
  static const CUresult started = start();
  return started;
}

CUcontext primary_context(int device, CUresult* result) {
  static std::mutex mutex;
  static auto* const contexts = new std::map<int, CUcontext>;  // for exit handlers, never destroyed
  const std::lock_guard lock(mutex);
  int active = 0;
  unsigned flags = 0;
  *result = DRIVER(cuDevicePrimaryCtxGetState)(device, &flags, &active);
  if (*result != CUDA_SUCCESS) return nullptr;
  CUcontext& context = (*contexts)[device];
  if (context == nullptr || active == 0) {
    *result = DRIVER(cuDevicePrimaryCtxRetain)(&context, device);
    if (*result != CUDA_SUCCESS) context = nullptr;
  }
  return context;
}

CUresult enter() {
  unsigned flags = 0;
  if (const CUresult started = begin(); started != CUDA_SUCCESS) return started;
  CUcontext current = nullptr;
  const CUresult got = DRIVER(cuCtxGetCurrent)(&current);
  if (got != CUDA_SUCCESS) return got;
  const unsigned reset = resets.load();
  const bool stale = seen_resets != reset && DRIVER(cuCtxGetFlags)(&flags) == CUDA_ERROR_CONTEXT_IS_DESTROYED;
  seen_resets = reset;
  return current != nullptr && !stale ? CUDA_SUCCESS : choose_device(current_device());
}

int current_device() {
  CUdevice device = 0;
  return begin() == CUDA_SUCCESS && DRIVER(cuCtxGetDevice)(&device) == CUDA_SUCCESS ? device : chosen_device;
}

CUresult choose_device(int device) {
  CUresult result = begin();
  if (result != CUDA_SUCCESS) return result;
  const CUcontext primary = primary_context(device, &result);
  if (result != CUDA_SUCCESS) return result;
  chosen_device = device;
  return DRIVER(cuCtxSetCurrent)(primary);
}

CUresult reset_device() {
  const CUresult entered = enter();
  const CUresult result = entered == CUDA_SUCCESS ? DRIVER(cuDevicePrimaryCtxReset)(current_device()) : entered;
  if (result == CUDA_SUCCESS) ++resets;
  return result;
}

}  // namespace gpuctl::softgpu::cudart
