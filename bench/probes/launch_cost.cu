// What a launch call costs the calling thread: bursts of 100 launches of an empty kernel of 8 blocks into one stream.
// Usage: launch_cost [green]: in a stream of a green context of 96 SMs. Runs without gpuctl and in a slice.
// Build: nvcc -o launch_cost launch_cost.cu -lcuda
#include <cuda.h>
#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "check.h"

__global__ void nothing() {}

static CUstream green_stream() {
  CUdevice device;
  CUdevResource all, part;
  CUdevResourceDesc description;
  CUgreenCtx green;
  CUstream stream;
  unsigned groups = 1;
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
  CHECK(cuDevSmResourceSplitByCount(&part, &groups, &all, nullptr, 0, 96));
  CHECK(cuDevResourceGenerateDesc(&description, &part, 1));
  CHECK(cuGreenCtxCreate(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM));
  CHECK(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
  return stream;
}

int main(int argc, char**) {
  CHECK(cudaFree(nullptr));
  CUstream stream;
  if (argc > 1)
    stream = green_stream();
  else
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  std::vector<double> us;
  for (int burst = 0; burst < 220; ++burst) {
    double times[101];
    for (double& time : times) {
      nothing<<<8, 32, 0, stream>>>();
      time = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
    }
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < 100 && burst >= 20; ++i) us.push_back(times[i + 1] - times[i]);
    usleep(1000);
  }
  std::sort(us.begin(), us.end());
  std::printf("%.2f us (a tenth below %.2f, a tenth above %.2f)\n", us[us.size() / 2], us[us.size() / 10],
              us[us.size() * 9 / 10]);
  return 0;
}
