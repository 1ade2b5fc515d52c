#include "softgpu/cudart/registration.h"

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "softgpu/cudart/driver.h"
#include "softgpu/cudart/error.h"

namespace gpuctl::softgpu::cudart {
namespace {

/// One call of __cudaRegisterFatBinary. Its address is the handle that nvcc's code keeps.
struct Binary {
  const void* wrapper = nullptr;
  CUlibrary library = nullptr;
  CUresult loaded = CUDA_ERROR_NOT_READY;  ///< the result of loading, once tried
};

struct KernelRecord {
  Binary* binary = nullptr;
  std::string name;
  CUkernel kernel = nullptr;
};

struct VariableRecord {
  Binary* binary = nullptr;
  std::string name;
  std::size_t bytes = 0;
  void** managed = nullptr;  ///< the host pointer that receives the address of a __managed__ variable
};

struct Registrations {
  std::mutex mutex;
  std::vector<std::unique_ptr<Binary>> binaries;
  std::map<const void*, KernelRecord> kernels;
  std::map<const void*, VariableRecord> variables;
};

/// Constructors of the program register before this library's constructors run, and exit handlers unregister after its
/// destructors: never destroyed.
Registrations& registrations() {
  static auto* all = new Registrations;
  return *all;
}

CUresult load(Binary& binary) {
  if (binary.loaded != CUDA_ERROR_NOT_READY) return binary.loaded;
  const CUresult entered = enter();
  if (entered != CUDA_SUCCESS) return entered;  // not remembered: a later device may be there
  binary.loaded = DRIVER(cuLibraryLoadData)(&binary.library, binary.wrapper, nullptr, nullptr, 0, nullptr, nullptr, 0);
  return binary.loaded;
}

/// Gives every `__managed__` variable of a binary its address. The caller holds the mutex.
void place_managed(Registrations& all, const Binary& binary) {
  for (const auto& [host, record] : all.variables) {
    if (record.binary != &binary || record.managed == nullptr) continue;
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
    if (DRIVER(cuLibraryGetGlobal)(&address, &bytes, binary.library, record.name.c_str()) == CUDA_SUCCESS) {
      *record.managed = reinterpret_cast<void*>(address);
    }
  }
}

}  // namespace

CUkernel find_kernel(const void* host_function, CUresult* result) {
  Registrations& all = registrations();
  const std::lock_guard lock(all.mutex);
  const auto found = all.kernels.find(host_function);
  if (found == all.kernels.end()) {
    *result = static_cast<CUresult>(cudaErrorInvalidDeviceFunction);
    return nullptr;
  }
  KernelRecord& record = found->second;
  *result = load(*record.binary);
  if (*result == CUDA_SUCCESS && record.kernel == nullptr) {
    *result = DRIVER(cuLibraryGetKernel)(&record.kernel, record.binary->library, record.name.c_str());
    if (*result != CUDA_SUCCESS) *result = static_cast<CUresult>(cudaErrorInvalidDeviceFunction);
  }
  return record.kernel;
}

CUresult find_variable(const void* host_variable, CUdeviceptr* address, std::size_t* bytes) {
  Registrations& all = registrations();
  const std::lock_guard lock(all.mutex);
  const auto found = all.variables.find(host_variable);
  if (found == all.variables.end()) return static_cast<CUresult>(cudaErrorInvalidSymbol);
  const CUresult loaded = load(*found->second.binary);
  if (loaded != CUDA_SUCCESS) return loaded;
  return DRIVER(cuLibraryGetGlobal)(address, bytes, found->second.binary->library, found->second.name.c_str());
}

}  // namespace gpuctl::softgpu::cudart

using namespace gpuctl::softgpu::cudart;

extern "C" {

void** CUDARTAPI __cudaRegisterFatBinary(void* wrapper) {
  Registrations& all = registrations();
  const std::lock_guard lock(all.mutex);
  all.binaries.push_back(std::make_unique<Binary>());
  all.binaries.back()->wrapper = wrapper;
  return reinterpret_cast<void**>(all.binaries.back().get());
}

void CUDARTAPI __cudaRegisterFatBinaryEnd(void**) {}

// The program is ending: the driver frees everything by itself.
void CUDARTAPI __cudaUnregisterFatBinary(void**) {}

void CUDARTAPI __cudaRegisterFunction(void** handle, const char* host_function, char*, const char* name, int, uint3*,
                                      uint3*, dim3*, dim3*, int*) {
  Registrations& all = registrations();
  const std::lock_guard lock(all.mutex);
  all.kernels[host_function] = {reinterpret_cast<Binary*>(handle), name, nullptr};
}

void CUDARTAPI __cudaRegisterVar(void** handle, char* host_variable, char*, const char* name, int, size_t bytes, int,
                                 int) {
  Registrations& all = registrations();
  const std::lock_guard lock(all.mutex);
  all.variables[host_variable] = {reinterpret_cast<Binary*>(handle), name, bytes, nullptr};
}

void CUDARTAPI __cudaRegisterManagedVar(void** handle, void** host_pointer, char*, const char* name, int, size_t bytes,
                                        int, int) {
  Registrations& all = registrations();
  const std::lock_guard lock(all.mutex);
  all.variables[host_pointer] = {reinterpret_cast<Binary*>(handle), name, bytes, host_pointer};
}

char CUDARTAPI __cudaInitModule(void** handle) {
  Registrations& all = registrations();
  const std::lock_guard lock(all.mutex);
  auto* binary = reinterpret_cast<Binary*>(handle);
  if (load(*binary) == CUDA_SUCCESS) place_managed(all, *binary);
  return 1;
}

cudaError_t CUDARTAPI __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  CUresult result = CUDA_SUCCESS;
  *kernel = reinterpret_cast<cudaKernel_t>(find_kernel(host_function, &result));
  return report(result);
}

cudaError_t CUDARTAPI cudaGetSymbolAddress(void** address, const void* symbol) {
  std::size_t bytes = 0;
  return report(find_variable(symbol, reinterpret_cast<CUdeviceptr*>(address), &bytes));
}

cudaError_t CUDARTAPI cudaGetSymbolSize(size_t* size, const void* symbol) {
  CUdeviceptr address = 0;
  return report(find_variable(symbol, &address, size));
}

}  // extern "C"
