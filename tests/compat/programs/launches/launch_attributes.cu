// compat: cudaLaunchKernelEx with attributes: priority, memory synchronisation domain, and none
// soft: yes
#include "work.h"

__global__ void advance(std::uint32_t* values, int count, int steps, std::uint32_t salt) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = mix(values[i] + i + salt, steps);
}

int main() {
  const int count = work_threads(), steps = work_steps(), rounds = work_rounds();
  int least = 0, greatest = 0;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  std::uint32_t* values = zeros<std::uint32_t>(count);
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaDeviceSynchronize());
  for (int round = 0; round < rounds; ++round) {
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributePriority;
    attributes[0].val.priority = round % 2 ? greatest : least;
    attributes[1].id = cudaLaunchAttributeMemSyncDomain;
    attributes[1].val.memSyncDomain = cudaLaunchMemSyncDomainDefault;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3((count + 255) / 256);
    config.blockDim = dim3(256);
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = round % 3;
    CHECK(cudaLaunchKernelEx(&config, advance, values, count, steps, static_cast<std::uint32_t>(round)));
  }
  CHECK(cudaStreamSynchronize(stream));
  const std::vector<std::uint32_t> got = on_host(values, count);
  for (int i = 0; i < count; i += count / 97 + 1) {
    std::uint32_t value = 0;
    for (int round = 0; round < rounds; ++round) value = mix(value + i + round, steps);
    must(got[i] == value, "what the launches computed");
  }
  print_hash("values", got.data(), count * sizeof(std::uint32_t));
}
