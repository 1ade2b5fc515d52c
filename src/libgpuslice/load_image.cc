#include "libgpuslice/load_image.h"

#include <sched.h>

#include <fstream>
#include <iterator>

#include "libgpuslice/driver.h"
#include "ptx/persistent_abi.h"

namespace gpuslice {

namespace {

/// That of the current context, or the first: libraries are loaded before there is one.
CUdevice current_device() {
  CUdevice device = 0;
  if (driver().cuCtxGetDevice(&device) != CUDA_SUCCESS) driver().cuDeviceGet(&device, 0);
  return device;
}

}  // namespace

unsigned device_sm() {
  const CUdevice device = current_device();
  int major = 0, minor = 0;
  driver().cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  driver().cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  return static_cast<unsigned>(major * 10 + minor);
}

unsigned compile_threads_here(std::size_t text_bytes) {
  int version = 0;
  cpu_set_t cpus;
  if (driver().cuDriverGetVersion(&version) != CUDA_SUCCESS || sched_getaffinity(0, sizeof cpus, &cpus) != 0) return 1;
  return compile_threads(version, text_bytes, static_cast<unsigned>(CPU_COUNT(&cpus)));
}

bool persistent_forms_load(const LoadedImage& image) {
  for (const ImageKernel& kernel : image.image.kernels) {
    if (!kernel.persistent) continue;
    const std::string name = kernel.name + gpuctl::ptx::kPersistentSuffix;
    if (image.library) {
      CUkernel found;
      return driver().cuLibraryGetKernel(&found, image.library, name.c_str()) == CUDA_SUCCESS;
    }
    CUfunction found;
    return driver().cuModuleGetFunction(&found, image.module, name.c_str()) == CUDA_SUCCESS;
  }
  return true;
}

namespace {

/// An attribute of one of its kernels on the device whose turn it is; 0 if that cannot be learnt.
int attribute_of(const LoadedImage& image, const std::string& name, CUfunction_attribute attribute) {
  int value = 0;
  if (image.library) {
    CUkernel kernel;
    if (!driver().cuKernelGetAttribute || driver().cuLibraryGetKernel(&kernel, image.library, name.c_str()) != CUDA_SUCCESS ||
        driver().cuKernelGetAttribute(&value, attribute, kernel, current_device()) != CUDA_SUCCESS) {
      return 0;
    }
    return value;
  }
  CUfunction function;
  if (driver().cuModuleGetFunction(&function, image.module, name.c_str()) != CUDA_SUCCESS ||
      driver().cuFuncGetAttribute(&value, attribute, function) != CUDA_SUCCESS) {
    return 0;
  }
  return value;
}

}  // namespace

std::vector<RegisterLimit> wanted_limits(const LoadedImage& image) {
  std::vector<RegisterLimit> limits;
  for (const ImageKernel& kernel : image.image.kernels) {
    if (!kernel.persistent) continue;
    const std::string name = kernel.name + gpuctl::ptx::kPersistentSuffix;
    const std::optional<int> limit = register_limit(attribute_of(image, kernel.name, CU_FUNC_ATTRIBUTE_NUM_REGS),
                                                    attribute_of(image, name, CU_FUNC_ATTRIBUTE_NUM_REGS));
    if (limit) limits.push_back({name, *limit});
  }
  return limits;
}

std::size_t local_bytes(const LoadedImage& image) {
  std::size_t bytes = 0;
  for (const ImageKernel& kernel : image.image.kernels) {
    if (!kernel.persistent) continue;
    bytes += static_cast<std::size_t>(attribute_of(image, kernel.name + gpuctl::ptx::kPersistentSuffix, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  }
  return bytes;
}

std::optional<std::vector<char>> read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  bytes.push_back('\0');
  return bytes;
}

}  // namespace gpuslice
