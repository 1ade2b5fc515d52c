// compat: the driver's linker makes one module of two PTX texts, and of one with options
// libs: nvrtc cuda
// builds: both shared
#include "compile.h"

namespace {

constexpr const char* kKernel = R"(
__device__ unsigned turn(unsigned x);
extern __device__ unsigned launches;
extern "C" __global__ void work(unsigned* data, unsigned count, unsigned depth) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) ++launches;
  if (i >= count) return;
  unsigned x = data[i];
  for (unsigned done = 0; done < depth; ++done) x = turn(x);
  data[i] = x;
}
)";

constexpr const char* kFunction = R"(
__device__ unsigned launches = 0;
__device__ unsigned turn(unsigned x) { return (x * 1664525u + 1013904223u) ^ (x >> 7); }
)";

}  // namespace

int main() {
  const CUdevice device = use_device();
  char errors[4096] = {}, words[4096] = {};
  CUjit_option names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
                          CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_LOG_VERBOSE};
  void* values[] = {errors, reinterpret_cast<void*>(sizeof errors), words, reinterpret_cast<void*>(sizeof words),
                    reinterpret_cast<void*>(1)};
  CUlinkState link;
  CHECK_DRIVER(cuLinkCreate(5, names, values, &link));
  for (const char* source : {kKernel, kFunction}) {
    std::vector<char> ptx = ptx_of(compile(source, {virtual_option(device), "-rdc=true"}));
    CHECK_DRIVER(cuLinkAddData(link, CU_JIT_INPUT_PTX, ptx.data(), ptx.size(),
                               source == kKernel ? "kernel" : "function", 0, nullptr, nullptr));
  }
  void* code = nullptr;
  std::size_t bytes = 0;
  CHECK_DRIVER(cuLinkComplete(link, &code, &bytes));
  CUmodule module;
  CHECK_DRIVER(cuModuleLoadData(&module, code));
  CHECK_DRIVER(cuLinkDestroy(link));
  CUfunction function;
  CHECK_DRIVER(cuModuleGetFunction(&function, module, "work"));
  run_work("two texts", function, amount());
  CUdeviceptr launches = 0;
  CHECK_DRIVER(cuModuleGetGlobal(&launches, &bytes, module, "launches"));
  unsigned counted = 0;
  CHECK_DRIVER(cuMemcpyDtoH(&counted, launches, sizeof counted));
  std::printf("launches %s\n", counted == amount().launches ? "right" : "WRONG");
  CHECK_DRIVER(cuModuleUnload(module));

  CHECK_DRIVER(cuLinkCreate(0, nullptr, nullptr, &link));
  std::vector<char> ptx = ptx_of(compile(kWorkSource, {virtual_option(device)}));
  CUjit_option level[] = {CU_JIT_OPTIMIZATION_LEVEL};
  void* two[] = {reinterpret_cast<void*>(2)};
  CHECK_DRIVER(cuLinkAddData(link, CU_JIT_INPUT_PTX, ptx.data(), ptx.size(), "one", 1, level, two));
  CHECK_DRIVER(cuLinkComplete(link, &code, &bytes));
  CHECK_DRIVER(cuModuleLoadData(&module, code));
  CHECK_DRIVER(cuLinkDestroy(link));
  CHECK_DRIVER(cuModuleGetFunction(&function, module, "work"));
  run_work("one text", function, amount());
  CHECK_DRIVER(cuModuleUnload(module));
  return 0;
}
