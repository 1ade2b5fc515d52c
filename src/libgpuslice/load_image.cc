#include "libgpuslice/load_image.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "libgpuslice/driver.h"
#include "ptx/persistent_abi.h"

namespace gpuslice {

unsigned device_sm() {
  CUdevice device = 0;
  int major = 0, minor = 0;
  if (driver().cuCtxGetDevice(&device) != CUDA_SUCCESS) driver().cuDeviceGet(&device, 0);
  driver().cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  driver().cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  return static_cast<unsigned>(major * 10 + minor);
}

JitOptions::JitOptions(const CUjit_option* given, void* const* given_values, unsigned count, int max_registers) {
  if (given && given_values) {
    names.assign(given, given + count);
    values.assign(given_values, given_values + count);
  }
  if (max_registers > 0 && std::find(names.begin(), names.end(), CU_JIT_MAX_REGISTERS) == names.end()) {
    names.push_back(CU_JIT_MAX_REGISTERS);
    values.push_back(reinterpret_cast<void*>(static_cast<std::uintptr_t>(max_registers)));
  }
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

std::optional<std::vector<char>> read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  bytes.push_back('\0');
  return bytes;
}

}  // namespace gpuslice
