// How long kernels take that the GPU places beside others: a block's warps may be placed on an SM and yet not run.
//
//   nvcc -O2 -arch=native -o beside_workers beside_workers.cu
//   beside_workers spin|compute PRIORITY BLOCKS [ITERATIONS]
//   beside_workers hold PRIORITY
//
// One kernel after the other for a second, 3 ms apart, of blocks of 256 threads: `spin` looks at the clock until 300 us
// are over, `compute` does as many multiplications as an SM with eight such blocks does in 300 us, or ITERATIONS.
// Prints how many there were, and the median, 90 % and the greatest of the time from launch to end. `hold` fills the
// SMs that it may use with blocks of 60 ms, of the least priority, and has a grid of PRIORITY wait behind them (9:
// none), for four seconds: for the others to be measured beside it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <time.h>

__global__ void spin(unsigned ns) {
  unsigned long long began, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(began));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - began < ns);
}

__global__ void compute(float* out, unsigned iterations, float scale, float offset) {
  float x = static_cast<float>(threadIdx.x);
#pragma unroll 16
  for (unsigned i = 0; i < iterations; ++i) x = fmaf(x, scale, offset);
  out[(blockIdx.x % 1024) * 256 + threadIdx.x] = x;
}

static double now_us() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static int hold(int priority) {
  int sms = 0;
  cudaStream_t least, other;
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
  cudaStreamCreateWithPriority(&least, cudaStreamNonBlocking, 0);
  cudaStreamCreateWithPriority(&other, cudaStreamNonBlocking, priority);
  for (const double end = now_us() + 4e6; now_us() < end;) {
    spin<<<8 * sms, 256, 0, least>>>(60000000);
    const timespec pause = {0, 2000000};
    nanosleep(&pause, nullptr);
    if (priority != 9) spin<<<64, 256, 0, other>>>(1000);
    cudaDeviceSynchronize();
  }
  std::printf("held %d SMs: %s\n", sms, cudaGetErrorString(cudaGetLastError()));
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "hold") == 0) return hold(std::atoi(argv[2]));
  if (argc < 4) return 2;
  const bool computes = std::strcmp(argv[1], "compute") == 0;
  const int priority = std::atoi(argv[2]), blocks = std::atoi(argv[3]);
  const unsigned iterations = argc > 4 ? std::atoi(argv[4]) : 28522;
  cudaStream_t stream;
  cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority);
  float* out;
  cudaMalloc(&out, 1024 * 256 * sizeof *out);
  spin<<<1, 32, 0, stream>>>(1000);
  cudaDeviceSynchronize();
  std::vector<double> took;
  for (const double end = now_us() + 1e6; now_us() < end;) {
    const double began = now_us();
    if (computes)
      compute<<<blocks, 256, 0, stream>>>(out, iterations, 0.5f, 1.0f);
    else
      spin<<<blocks, 256, 0, stream>>>(300000);
    cudaStreamSynchronize(stream);
    took.push_back(now_us() - began);
    const timespec pause = {0, 3000000};
    nanosleep(&pause, nullptr);
  }
  std::sort(took.begin(), took.end());
  std::printf("%s at %d, %d blocks: %zu kernels, median %.0f us, 90%% %.0f, greatest %.0f: %s\n", argv[1], priority,
              blocks, took.size(), took[took.size() / 2], took[took.size() * 9 / 10], took.back(),
              cudaGetErrorString(cudaGetLastError()));
}
