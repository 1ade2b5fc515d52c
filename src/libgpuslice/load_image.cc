#include "libgpuslice/load_image.h"

#include <sched.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "libgpuslice/cache_directory.h"
#include "libgpuslice/compiled_image.h"
#include "libgpuslice/driver.h"
#include "ptx/persistent_abi.h"

namespace gpuslice {

namespace {

unsigned sm_of(CUdevice device) {
  int major = 0, minor = 0;
  driver().cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  driver().cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  return static_cast<unsigned>(major * 10 + minor);
}

/// What is compiled for one device runs on all: libraries are loaded for all.
bool devices_are_alike() {
  int count = 0;
  if (driver().cuDeviceGetCount(&count) != CUDA_SUCCESS) return false;
  for (CUdevice device = 1; device < count; ++device) {
    if (sm_of(device) != sm_of(0)) return false;
  }
  return true;
}

/// GPUSLICE_BACKGROUND is not 0.
bool may_wait() {
  static const bool may = [] {
    const char* wanted = std::getenv("GPUSLICE_BACKGROUND");
    return !wanted || std::strcmp(wanted, "0") != 0;
  }();
  return may;
}

}  // namespace

CUdevice current_device() {
  CUdevice device = 0;
  // Libraries are loaded before there is a context.
  if (driver().cuCtxGetDevice(&device) != CUDA_SUCCESS) driver().cuDeviceGet(&device, 0);
  return device;
}

LoadPlan plan_load(const PreparedImage& image, const CUjit_option* options, unsigned count) {
  CUcontext context = nullptr;
  LoadFacts facts{.text_bytes = image.text.size(),
                  .machine_code = image.machine_code && !image.text.empty() && devices_are_alike(),
                  .stands_alone = image.stands_alone,
                  .changed_by_options = options_change_code(count, options),
                  .has_context = driver().cuCtxGetCurrent(&context) == CUDA_SUCCESS && context,
                  .has_cache = CacheDirectory::of_user().keeps(),
                  .may_wait = may_wait()};
  LoadPlan plan{.compiled = {}, .when = when_to_compile(facts)};
  // What is kept may be loaded by those too who would rather wait, or have no context yet.
  facts.may_wait = facts.has_context = true;
  int version = 0;
  if (when_to_compile(facts) != Compile::kNow && driver().cuDriverGetVersion(&version) == CUDA_SUCCESS) {
    plan.compiled = find_compiled({.text = image.text, .driver_version = version, .sm = device_sm(), .max_registers = image.max_registers},
                                  CacheDirectory::of_user());
  }
  if (plan.compiled && plan.compiled->empty()) return {};
  return plan;
}

unsigned device_sm() {
  return sm_of(current_device());
}

unsigned compile_threads_here(std::size_t text_bytes) {
  int version = 0;
  cpu_set_t cpus;
  if (driver().cuDriverGetVersion(&version) != CUDA_SUCCESS || sched_getaffinity(0, sizeof cpus, &cpus) != 0) return 1;
  return compile_threads(version, text_bytes, static_cast<unsigned>(CPU_COUNT(&cpus)));
}

bool persistent_forms_load(const std::vector<ImageKernel>& kernels, CUlibrary library, CUmodule module) {
  for (const ImageKernel& kernel : kernels) {
    if (!kernel.persistent) continue;
    const std::string name = kernel.name + gpuctl::ptx::kPersistentSuffix;
    if (library) {
      CUkernel found;
      return driver().cuLibraryGetKernel(&found, library, name.c_str()) == CUDA_SUCCESS;
    }
    CUfunction found;
    return driver().cuModuleGetFunction(&found, module, name.c_str()) == CUDA_SUCCESS;
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
  return wanted_limits(image.image.kernels,
                       [&](const std::string& name) { return attribute_of(image, name, CU_FUNC_ATTRIBUTE_NUM_REGS); });
}

long long local_bytes(const LoadedImage& image) {
  return local_bytes(image.image.kernels,
                     [&](const std::string& name) { return attribute_of(image, name, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES); });
}

std::optional<std::vector<char>> read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  bytes.push_back('\0');
  return bytes;
}

}  // namespace gpuslice
