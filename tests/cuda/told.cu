// How large the program is told that its GPU is. Each line of the input is a command; each is answered with one line.
//
//   ask            what the runtime and the driver say, as NAME=NUMBER
//   cooperative    as many blocks as fit, by what was told, that all wait for each other: "ok BLOCKS" or "wrong"
//   grid           a grid-stride loop on the grid that the occupancy calculator proposes: the same
//   hold BYTES     allocates so much: "ok" or "refused"
//   sms            the number of SMs by the driver's attribute alone, for four threads at once: NUMBER or "differ"
#include <cuda.h>
#include <dlfcn.h>

#include <iostream>
#include <string>
#include <thread>

#include "program.h"

__global__ void meet(unsigned* arrived) {
  if (threadIdx.x != 0) return;
  atomicAdd(arrived, 1u);
  while (*static_cast<volatile unsigned*>(arrived) < gridDim.x) {
  }
}

__global__ void number(unsigned* out, unsigned count) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    out[i] = i * 2654435761u;
}

namespace {

/// A function of the driver as dlsym gives it, and as the driver's own look-up does.
template <class Function>
Function by_dlsym(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  return library ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
}

template <class Function>
Function by_look_up(const char* name) {
  void* found = nullptr;
  const auto look_up = by_dlsym<decltype(&cuGetProcAddress_v2)>("cuGetProcAddress_v2");
  if (!look_up || look_up(name, &found, CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, nullptr) != CUDA_SUCCESS)
    return nullptr;
  return reinterpret_cast<Function>(found);
}

#define OF_DRIVER(function, ...)                                               \
  do {                                                                         \
    const auto found_function = function;                                      \
    if (!found_function || found_function(__VA_ARGS__) != CUDA_SUCCESS) {      \
      std::fprintf(stderr, "%s:%d: the driver refuses\n", __FILE__, __LINE__); \
      std::exit(1);                                                            \
    }                                                                          \
  } while (false)

int sms_by(decltype(&cuDeviceGetAttribute) function) {
  int sms = 0;
  OF_DRIVER(function, &sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
  return sms;
}

void ask() {
  cudaDeviceProp properties{};
  int attribute = 0, grid = 0, block = 0, per_sm = 0, driver_grid = 0, driver_block = 0, flags_grid = 0;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  CUDA_CHECK(cudaDeviceGetAttribute(&attribute, cudaDevAttrMultiProcessorCount, 0));
  CUDA_CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, number, 0, 0));
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, number, block, 0));
  cudaFunction_t function = nullptr;
  CUDA_CHECK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(number)));
  const auto kernel = reinterpret_cast<CUfunction>(function);
  OF_DRIVER(by_dlsym<decltype(&cuOccupancyMaxPotentialBlockSize)>("cuOccupancyMaxPotentialBlockSize"), &driver_grid,
            &driver_block, kernel, nullptr, 0, 0);
  OF_DRIVER(
      by_look_up<decltype(&cuOccupancyMaxPotentialBlockSizeWithFlags)>("cuOccupancyMaxPotentialBlockSizeWithFlags"),
      &flags_grid, &driver_block, kernel, nullptr, 0, 0, CU_OCCUPANCY_DEFAULT);
  std::size_t total = 0, info_free = 0, info_total = 0;
  OF_DRIVER(by_dlsym<decltype(&cuDeviceTotalMem)>("cuDeviceTotalMem_v2"), &total, 0);
  CUDA_CHECK(cudaMemGetInfo(&info_free, &info_total));
  std::printf(
      "properties=%d attribute=%d dlsym=%d look_up=%d per_sm=%d grid=%d driver_grid=%d flags_grid=%d "
      "properties_memory=%zu total_memory=%zu info_total=%zu info_free=%zu\n",
      properties.multiProcessorCount, attribute,
      sms_by(by_dlsym<decltype(&cuDeviceGetAttribute)>("cuDeviceGetAttribute")),
      sms_by(by_look_up<decltype(&cuDeviceGetAttribute)>("cuDeviceGetAttribute")), per_sm, grid, driver_grid,
      flags_grid, properties.totalGlobalMem, total, info_total, info_free);
}

void cooperative() {
  int sms = 0, per_sm = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, meet, 128, 0));
  unsigned *arrived = nullptr, found = 0;
  CUDA_CHECK(cudaMalloc(&arrived, sizeof found));
  CUDA_CHECK(cudaMemset(arrived, 0, sizeof found));
  void* arguments[] = {&arrived};
  const auto blocks = static_cast<unsigned>(sms * per_sm);
  CUDA_CHECK(
      cudaLaunchCooperativeKernel(reinterpret_cast<void*>(meet), dim3(blocks), dim3(128), arguments, 0, nullptr));
  CUDA_CHECK(cudaMemcpy(&found, arrived, sizeof found, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(arrived));
  if (found == blocks)
    std::printf("ok %u\n", blocks);
  else
    std::printf("wrong\n");
}

void grid() {
  constexpr unsigned kCount = 30'011;
  int blocks = 0, threads = 0;
  CUDA_CHECK(cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, number, 0, 0));
  unsigned* out = nullptr;
  std::vector<unsigned> found(kCount);
  CUDA_CHECK(cudaMalloc(&out, kCount * sizeof(unsigned)));
  CUDA_CHECK(cudaMemset(out, 0, kCount * sizeof(unsigned)));
  number<<<blocks, threads>>>(out, kCount);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(found.data(), out, kCount * sizeof(unsigned), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(out));
  for (unsigned i = 0; i < kCount; ++i) {
    if (found[i] == i * 2654435761u) continue;
    std::printf("wrong\n");
    return;
  }
  std::printf("ok %d\n", blocks);
}

void hold(std::size_t bytes) {
  void* memory = nullptr;
  std::printf("%s\n", cudaMalloc(&memory, bytes) == cudaSuccess ? "ok" : "refused");
}

void ask_at_once() {
  OF_DRIVER(by_dlsym<decltype(&cuInit)>("cuInit"), 0);
  int answers[4] = {};
  std::vector<std::thread> threads;
  for (int& answer : answers)
    threads.emplace_back(
        [&answer] { answer = sms_by(by_dlsym<decltype(&cuDeviceGetAttribute)>("cuDeviceGetAttribute")); });
  for (std::thread& thread : threads) thread.join();
  bool same = true;
  for (const int answer : answers) same = same && answer == answers[0];
  if (same)
    std::printf("%d\n", answers[0]);
  else
    std::printf("differ\n");
}

}  // namespace

int main() {
  for (std::string command; std::cin >> command;) {
    if (command == "ask") ask();
    if (command == "cooperative") cooperative();
    if (command == "grid") grid();
    if (command == "sms") ask_at_once();
    std::size_t bytes = 0;
    if (command == "hold" && std::cin >> bytes) hold(bytes);
    std::fflush(stdout);
  }
  return 0;
}
