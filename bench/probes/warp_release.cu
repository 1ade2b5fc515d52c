// Does a GPU start a thread block where all warps of those before it have ended, or earlier? Of each block one warp
// spins, the others return at once. Plain: a thread block each. Loop: as many blocks as fit, each taking one after the
// other.
//   nvcc -std=c++20 -arch=native warp_release.cu -o warp_release && ./warp_release
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace {

constexpr unsigned kRounds = 8;  // blocks for each place on the GPU
constexpr long long kCycles = 20'000;

__device__ void work() {
  if (threadIdx.x >= 32) return;
  for (const long long begin = clock64(); clock64() - begin < kCycles;) {
  }
}

__global__ void plain(unsigned) {
  work();
}

__global__ void loop(unsigned blocks) {
  for (unsigned block = blockIdx.x; block < blocks; block += gridDim.x) {
    work();
    __syncthreads();
  }
}

float median_us(void (*kernel)(unsigned), unsigned grid, unsigned threads, unsigned blocks) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::vector<float> took(25);
  for (float& ms : took) {
    cudaEventRecord(begin);
    kernel<<<grid, threads>>>(blocks);
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    cudaEventElapsedTime(&ms, begin, end);
  }
  std::ranges::sort(took);
  return 1000 * took[took.size() / 2];
}

}  // namespace

int main() {
  int sms = 0;
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
  for (const unsigned threads : {32u, 128u, 256u}) {
    int fit = 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, loop, threads, 0);
    const unsigned places = sms * fit, blocks = places * kRounds;
    const float alone = median_us(plain, blocks, threads, blocks), looping = median_us(loop, places, threads, blocks);
    std::printf("%3u threads, %5u blocks, %2d on an SM: plain %.1f us, loop %.1f us\n", threads, blocks, fit, alone,
                looping);
  }
  return cudaGetLastError() != cudaSuccess;
}
