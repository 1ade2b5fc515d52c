// compat: two sources that NVRTC makes LTO intermediate code of and nvJitLink joins, loaded as machine code
// libs: nvrtc nvJitLink cuda
// builds: both shared
#include <cuda.h>
#include <nvJitLink.h>
#include <nvrtc.h>

#include <string>

#include "work.h"

const char* const kKernel = R"(
extern __device__ unsigned step(unsigned value, int steps);
extern __device__ unsigned table[4];
extern "C" __global__ void kernel(unsigned* values, int count, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = step(values[i] + i, steps) + table[i % 4];
})";

const char* const kFunctions = R"(
__device__ unsigned table[4] = {1, 10, 100, 1000};
__device__ unsigned step(unsigned value, int steps) {
  for (int i = 0; i < steps; ++i) value = (value ^ (value >> 15)) * 0x2c1b3c6du + 0x9e3779b9u;
  return value;
})";

std::vector<char> compile(const char* source, const std::string& architecture) {
  nvrtcProgram program = nullptr;
  CHECK_ZERO(nvrtcCreateProgram(&program, source, "source.cu", 0, nullptr, nullptr));
  const std::string option = "-arch=" + architecture;
  const char* options[] = {option.c_str(), "-dlto", "-rdc=true"};
  CHECK_ZERO(nvrtcCompileProgram(program, 3, options));
  std::size_t size = 0;
  CHECK_ZERO(nvrtcGetLTOIRSize(program, &size));
  std::vector<char> code(size);
  CHECK_ZERO(nvrtcGetLTOIR(program, code.data()));
  CHECK_ZERO(nvrtcDestroyProgram(&program));
  return code;
}

int main() {
  int major = 0, minor = 0;
  CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
  const std::string architecture = "sm_" + std::to_string(major * 10 + minor), option = "-arch=" + architecture;
  nvJitLinkHandle linker = nullptr;
  const char* options[] = {"-lto", option.c_str()};
  CHECK_ZERO(nvJitLinkCreate(&linker, 2, options));
  for (const char* source : {kKernel, kFunctions}) {
    const std::vector<char> code = compile(source, architecture);
    CHECK_ZERO(nvJitLinkAddData(linker, NVJITLINK_INPUT_LTOIR, code.data(), code.size(), "source"));
  }
  CHECK_ZERO(nvJitLinkComplete(linker));
  std::size_t size = 0;
  CHECK_ZERO(nvJitLinkGetLinkedCubinSize(linker, &size));
  std::vector<char> cubin(size);
  CHECK_ZERO(nvJitLinkGetLinkedCubin(linker, cubin.data()));
  CHECK_ZERO(nvJitLinkDestroy(&linker));

  int count = work_threads(), steps = work_steps();
  std::uint32_t* values = zeros<std::uint32_t>(count);
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  CHECK_ZERO(cuModuleLoadData(&module, cubin.data()));
  CHECK_ZERO(cuModuleGetFunction(&kernel, module, "kernel"));
  void* parameters[] = {&values, &count, &steps};
  for (int round = 0; round < work_rounds(); ++round) {
    CHECK_ZERO(cuLaunchKernel(kernel, (count + 255) / 256, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
  }
  const std::vector<std::uint32_t> got = on_host(values, count);
  const std::uint32_t table[] = {1, 10, 100, 1000};
  for (int i = 0; i < count; i += 9973) {
    std::uint32_t value = 0;
    for (int round = 0; round < work_rounds(); ++round) value = mix(value + i, steps) + table[i % 4];
    must(got[i] == value, "what the linked kernel computes");
  }
  print_hash("linked", got.data(), count * sizeof(std::uint32_t));
  CHECK_ZERO(cuModuleUnload(module));
}
