// Kernels that the program compiles with NVRTC, for the GPU it finds: nvrtc_program SCALE KIND ROUNDS. SCALE: times
// 32,768 numbers; KIND: cubin or ptx, what it takes from NVRTC. A round scrambles the numbers in two kernels, one of
// which shares memory within its blocks.
#include <nvrtc.h>

#include <cstdlib>
#include <string>

#include "../cuda/cubin_front_end.h"
#include "../driver/driver.h"
#include "rounds.h"

namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kCountAtScale1 = 32'768;

constexpr char kSource[] = R"(
__device__ unsigned scrambled(unsigned value, int steps) {
  for (int step = 0; step < steps; ++step) {
    value = value * 1664525u + 1013904223u;
    value ^= value >> 15;
  }
  return value;
}
extern "C" __global__ void scramble(unsigned* values, unsigned round) {
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  values[at] = scrambled(values[at] + round, 24);
}
extern "C" __global__ void __launch_bounds__(256) exchange(const unsigned* values, unsigned* sums) {
  __shared__ unsigned tile[256];
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = values[at];
  __syncthreads();
  for (unsigned distance = 128; distance > 0; distance /= 2) {
    const unsigned other = tile[threadIdx.x ^ distance];
    __syncthreads();
    tile[threadIdx.x] += other * 31;
    __syncthreads();
  }
  sums[at] = sums[at] * 3 + tile[threadIdx.x];
})";

std::vector<char> make_ptx(const char* architecture) {
  nvrtcProgram program = nullptr;
  std::size_t size = 0;
  std::vector<char> ptx;
  if (nvrtcCreateProgram(&program, kSource, "kernel.cu", 0, nullptr, nullptr) != NVRTC_SUCCESS ||
      nvrtcCompileProgram(program, 1, &architecture) != NVRTC_SUCCESS ||
      nvrtcGetPTXSize(program, &size) != NVRTC_SUCCESS) {
    std::fprintf(stderr, "NVRTC does not make PTX for %s\n", architecture);
    std::exit(1);
  }
  ptx.resize(size);
  nvrtcGetPTX(program, ptx.data());
  nvrtcDestroyProgram(&program);
  return ptx;
}

/// As loadable by cuModuleLoadData.
std::vector<char> make_image(const std::string& kind) {
  int major = 0, minor = 0;
  DRIVER_CHECK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  DRIVER_CHECK(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
  const std::string number = std::to_string(major * 10 + minor);
  if (kind == "ptx") return make_ptx(("-arch=compute_" + number).c_str());
  const std::string architecture = "-arch=sm_" + number;
  const char* options[] = {architecture.c_str()};
  std::vector<char> cubin;
  make_cubin(kSource, 1, options, cubin);
  return cubin;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: nvrtc_program SCALE cubin|ptx ROUNDS\n");
    return 2;
  }
  const unsigned count = kCountAtScale1 * static_cast<unsigned>(std::atoi(argv[1]));
  DRIVER_CHECK(cuInit(0));
  use_first_gpu();
  const std::vector<char> image = make_image(argv[2]);
  CUmodule module = nullptr;
  CUfunction scramble = nullptr, exchange = nullptr;
  DRIVER_CHECK(cuModuleLoadData(&module, image.data()));
  DRIVER_CHECK(cuModuleGetFunction(&scramble, module, "scramble"));
  DRIVER_CHECK(cuModuleGetFunction(&exchange, module, "exchange"));

  std::vector<unsigned char> bytes(2 * count * sizeof(unsigned));
  CUdeviceptr values = 0;
  DRIVER_CHECK(cuMemAlloc(&values, bytes.size()));
  DRIVER_CHECK(cuMemsetD32(values, 1, 2 * count));
  CUdeviceptr sums = values + count * sizeof(unsigned);
  unsigned number = 0;
  run_rounds(
      {.name = "nvrtc_program",
       .round =
           [&] {
             void* first[] = {&values, &number};
             void* second[] = {&values, &sums};
             DRIVER_CHECK(cuLaunchKernel(scramble, count / kThreads, 1, 1, kThreads, 1, 1, 0, nullptr, first, nullptr));
             DRIVER_CHECK(
                 cuLaunchKernel(exchange, count / kThreads, 1, 1, kThreads, 1, 1, 0, nullptr, second, nullptr));
             ++number;
           },
       .wait = [] { DRIVER_CHECK(cuCtxSynchronize()); },
       .contents =
           [&] {
             DRIVER_CHECK(cuMemcpyDtoH(bytes.data(), values, bytes.size()));
             return bytes;
           }},
      argv[3]);
  return 0;
}
