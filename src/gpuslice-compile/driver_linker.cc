#include <cuda.h>
#include <dlfcn.h>

#include <cstdint>

#include "gpuslice-compile/compiler.h"
#include "gpuslice-compile/symbols.h"

namespace gpuctl::compile {
namespace {

/// Size of the buffer for the compiler's log.
constexpr std::size_t kLogBytes = std::size_t{1} << 20;
/// What CUjit_target adds for architectures with these suffixes.
constexpr unsigned kSuffixA = 0x10000, kSuffixF = 0x20000;

#define GPUCTL_FUNCTION(name) decltype(&::name) name = nullptr
struct Driver {
  GPUCTL_FUNCTION(cuInit);
  GPUCTL_FUNCTION(cuDeviceGet);
  GPUCTL_FUNCTION(cuDevicePrimaryCtxRetain);
  GPUCTL_FUNCTION(cuCtxSetCurrent);
  GPUCTL_FUNCTION(cuLinkCreate);
  GPUCTL_FUNCTION(cuLinkAddData);
  GPUCTL_FUNCTION(cuLinkComplete);
  GPUCTL_FUNCTION(cuLinkDestroy);
};

/// Makes a context of the first device current; an error if there is none.
Result<Driver> prepare(const std::string& where) {
  void* library = dlopen(where.empty() ? "libcuda.so.1" : where.c_str(), RTLD_NOW);
  if (!library) return fail("there is no CUDA driver");
  Driver api;
  bool whole = true;
  const auto find = [&](auto& function, const char* name) { whole &= find_symbol(library, function, name); };
  find(api.cuInit, "cuInit");
  find(api.cuDeviceGet, "cuDeviceGet");
  find(api.cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  find(api.cuCtxSetCurrent, "cuCtxSetCurrent");
  find(api.cuLinkCreate, "cuLinkCreate_v2");
  find(api.cuLinkAddData, "cuLinkAddData_v2");
  find(api.cuLinkComplete, "cuLinkComplete");
  find(api.cuLinkDestroy, "cuLinkDestroy");
  if (!whole) return fail("the driver has no linker");
  CUdevice device = 0;
  CUcontext context = nullptr;
  if (api.cuInit(0) != CUDA_SUCCESS || api.cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
      api.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS || api.cuCtxSetCurrent(context) != CUDA_SUCCESS)
    return fail("the driver gives no context");
  return api;
}

void* as_value(std::uintptr_t number) {
  return reinterpret_cast<void*>(number);
}

}  // namespace

Result<MachineCode> compile_by_driver(const Source& source, const std::string& where) {
  static const Result<Driver> prepared = prepare(where);
  if (!prepared) return prepared.error();
  const Driver& api = *prepared;
  std::string log(kLogBytes, '\0');
  std::vector<CUjit_option> options = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_LOG_VERBOSE};
  std::vector<void*> values = {log.data(), as_value(log.size()), as_value(1)};
  const auto add = [&](CUjit_option option, std::uintptr_t value) {
    options.push_back(option);
    values.push_back(as_value(value));
  };
  if (source.max_registers > 0) add(CU_JIT_MAX_REGISTERS, static_cast<std::uintptr_t>(source.max_registers));
  if (source.suffix != '\0') add(CU_JIT_TARGET, source.sm + (source.suffix == 'a' ? kSuffixA : kSuffixF));
  CUlinkState state = nullptr;
  CUresult result = api.cuLinkCreate(static_cast<unsigned>(options.size()), options.data(), values.data(), &state);
  if (result != CUDA_SUCCESS) return fail("the driver's linker: CUDA error " + std::to_string(result));
  void* image = nullptr;
  std::size_t bytes = 0;
  MachineCode made;
  result = api.cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char*>(source.text.c_str()), source.text.size() + 1,
                             "rewritten", 0, nullptr, nullptr);
  if (result == CUDA_SUCCESS) result = api.cuLinkComplete(state, &image, &bytes);
  if (result == CUDA_SUCCESS) made.image.assign(static_cast<const char*>(image), bytes);
  api.cuLinkDestroy(state);
  if (result != CUDA_SUCCESS) return fail("the driver's linker: CUDA error " + std::to_string(result));
  made.kernels = gpuslice::read_compiler_log(log.c_str());
  return made;
}

}  // namespace gpuctl::compile
