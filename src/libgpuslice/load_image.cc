#include "libgpuslice/load_image.h"

#include <sched.h>

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

std::optional<std::vector<char>> read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  bytes.push_back('\0');
  return bytes;
}

}  // namespace gpuslice
