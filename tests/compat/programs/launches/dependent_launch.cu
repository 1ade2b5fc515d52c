// compat: programmatic dependent launch: the next kernel begins before the last one is done, and waits for its results
#include "work.h"

__global__ void step(std::uint32_t* values, int count, int steps, std::uint32_t salt) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const std::uint32_t apart = mix(i + salt, steps / 2);  // needs nothing of the kernel before
  cudaGridDependencySynchronize();
  if (i < count) values[i] = mix(values[i] + apart, steps / 2);
  cudaTriggerProgrammaticLaunchCompletion();
}

int main() {
  const int count = work_threads(), steps = work_steps(), rounds = work_rounds();
  std::uint32_t* values = zeros<std::uint32_t>(count);
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaDeviceSynchronize());
  for (int round = 0; round < rounds; ++round) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3((count + 255) / 256);
    config.blockDim = dim3(256);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = round > 0 ? 1 : 0;
    CHECK(cudaLaunchKernelEx(&config, step, values, count, steps, static_cast<std::uint32_t>(round)));
  }
  CHECK(cudaStreamSynchronize(stream));
  const std::vector<std::uint32_t> got = on_host(values, count);
  for (int i = 0; i < count; i += count / 97 + 1) {
    std::uint32_t value = 0;
    for (int round = 0; round < rounds; ++round) value = mix(value + mix(i + round, steps / 2), steps / 2);
    must(got[i] == value, "what the kernels computed");
  }
  print_hash("values", got.data(), count * sizeof(std::uint32_t));
}
