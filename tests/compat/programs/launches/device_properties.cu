// compat: what the device says of itself, by properties and by attributes
// soft: yes
#include "advance.h"

int main() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  must(devices > 0, "there is a device");
  cudaDeviceProp p{};
  CHECK(cudaGetDeviceProperties(&p, 0));
  std::printf("%s %d.%d\n", p.name, p.major, p.minor);
  std::printf("SMs %d threads %d per SM %d warp %d registers %d\n", p.multiProcessorCount, p.maxThreadsPerBlock,
              p.maxThreadsPerMultiProcessor, p.warpSize, p.regsPerBlock);
  std::printf("shared %zu per SM %zu opt-in %zu constant %zu\n", p.sharedMemPerBlock, p.sharedMemPerMultiprocessor,
              p.sharedMemPerBlockOptin, p.totalConstMem);
  std::printf("grid %d %d %d block %d %d %d\n", p.maxGridSize[0], p.maxGridSize[1], p.maxGridSize[2],
              p.maxThreadsDim[0], p.maxThreadsDim[1], p.maxThreadsDim[2]);
  int sms = 0, warp = 0;
  CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  CHECK(cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, 0));
  must(sms == p.multiProcessorCount && warp == p.warpSize, "attributes say what the properties say");
  int driver = 0, runtime = 0;
  CHECK(cudaDriverGetVersion(&driver));
  CHECK(cudaRuntimeGetVersion(&runtime));
  std::printf("driver %d runtime %d\n", driver, runtime);
  // A grid by the number of SMs, as programs make them.
  const int count = work_threads();
  std::uint32_t* values = zeros<std::uint32_t>(count);
  for (int round = 0; round < work_rounds(); ++round) {
    launch_advance(values, count, work_steps(), round);
    CHECK(cudaGetDeviceProperties(&p, 0));
  }
  must(p.multiProcessorCount == sms, "the number of SMs stays");
  print_device_hash("values", values, count);
}
