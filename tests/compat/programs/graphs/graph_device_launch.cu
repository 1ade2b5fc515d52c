// compat: a graph launched from a kernel on the device, fire and forget and as a tail
// libs: cudadevrt
// builds: rdc
#include "mix.h"

namespace {

constexpr int kCount = 1 << 16, kDepth = 100, kTimes = 20;

__device__ int left;

__global__ void launch_inner(cudaGraphExec_t inner) {
  cudaGraphLaunch(inner, cudaStreamGraphFireAndForget);
}

/// Launches the graph that it is in once more, until none are left.
__global__ void launch_again() {
  if (--left > 0) cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}

}  // namespace

int main() {
  unsigned* data = nullptr;
  CHECK(cudaMalloc(&data, kCount * sizeof(unsigned)));
  number_kernel<<<blocks_for(kCount), 256>>>(data, kCount);
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaDeviceSynchronize());

  cudaGraph_t graph;
  cudaGraphExec_t inner, outer, chain;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  launch_mix(data, kCount, 1, kDepth, stream);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&inner, graph, cudaGraphInstantiateFlagDeviceLaunch));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphUpload(inner, stream));
  CHECK(cudaStreamSynchronize(stream));

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  launch_inner<<<1, 1, 0, stream>>>(inner);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&outer, graph, cudaGraphInstantiateFlagDeviceLaunch));
  CHECK(cudaGraphDestroy(graph));
  for (int i = 0; i < kTimes; ++i) {
    CHECK(cudaGraphLaunch(outer, stream));
    CHECK(cudaStreamSynchronize(stream));
  }

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  launch_mix(data, kCount, 1, kDepth, stream);
  launch_again<<<1, 1, 0, stream>>>();
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&chain, graph, cudaGraphInstantiateFlagDeviceLaunch));
  CHECK(cudaGraphDestroy(graph));
  const int times = kTimes;
  CHECK(cudaMemcpyToSymbol(left, &times, sizeof times));
  CHECK(cudaGraphLaunch(chain, stream));
  CHECK(cudaStreamSynchronize(stream));

  std::vector<unsigned> got(kCount);
  CHECK(cudaMemcpy(got.data(), data, kCount * sizeof(unsigned), cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (unsigned i = 0; i < kCount; i += 997) {
    unsigned x = i;
    for (int time = 0; time < 2 * kTimes; ++time) x = mix(x, 1, kDepth);
    wrong += got[i] != x;
  }
  std::printf("launched from the device %s\n", wrong == 0 ? "right" : "WRONG");
  print_hash("data", got.data(), kCount * sizeof(unsigned));
  CHECK(cudaGraphExecDestroy(chain));
  CHECK(cudaGraphExecDestroy(outer));
  CHECK(cudaGraphExecDestroy(inner));
  return 0;
}
