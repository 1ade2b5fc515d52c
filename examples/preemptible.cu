// A program that is in a slice by itself: preemptible [ROUNDS] blurs an image as often (10), and compares it each time
// with what the CPU makes of it.
//
//   gpuslice-nvcc -std=c++17 -O2 -o preemptible preemptible.cu
//   GPUCTL_SLICE=batch ./preemptible
//
// gpuslice-nvcc keeps its PTX, so that its kernel can be evicted, and links libgpuslice, so that it needs no gpuctl
// run. Started with no slice it is an ordinary CUDA program.
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int kTile = 16;
constexpr int kRadius = 2;
constexpr int kApron = kTile + 2 * kRadius;

/// Each pixel becomes the sum of its neighbourhood; beyond the edges there is nothing. `blocks` counts how often each
/// block was run.
__global__ void blur(const unsigned* in, unsigned* out, int width, int height, unsigned* blocks) {
  __shared__ unsigned tile[kApron][kApron];
  const int left = static_cast<int>(blockIdx.x) * kTile - kRadius;
  const int top = static_cast<int>(blockIdx.y) * kTile - kRadius;
  for (int y = threadIdx.y; y < kApron; y += kTile) {
    for (int x = threadIdx.x; x < kApron; x += kTile) {
      const bool inside = left + x >= 0 && left + x < width && top + y >= 0 && top + y < height;
      tile[y][x] = inside ? in[(top + y) * width + left + x] : 0;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0) atomicAdd(&blocks[blockIdx.y * gridDim.x + blockIdx.x], 1u);
  const int x = left + kRadius + static_cast<int>(threadIdx.x);
  const int y = top + kRadius + static_cast<int>(threadIdx.y);
  if (x >= width || y >= height) return;
  unsigned sum = 0;
  for (int dy = 0; dy <= 2 * kRadius; ++dy) {
    for (int dx = 0; dx <= 2 * kRadius; ++dx) sum += tile[threadIdx.y + dy][threadIdx.x + dx];
  }
  out[y * width + x] = sum;
}

static unsigned expected(const std::vector<unsigned>& in, int width, int height, int x, int y) {
  unsigned sum = 0;
  for (int dy = -kRadius; dy <= kRadius; ++dy) {
    for (int dx = -kRadius; dx <= kRadius; ++dx) {
      const bool inside = x + dx >= 0 && x + dx < width && y + dy >= 0 && y + dy < height;
      if (inside) sum += in[(y + dy) * width + x + dx];
    }
  }
  return sum;
}

static void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "preemptible: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

template <class T>
static T* on_device(const std::vector<T>& values) {
  T* copy = nullptr;
  check(cudaMalloc(&copy, values.size() * sizeof(T)), "cudaMalloc");
  check(cudaMemcpy(copy, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  return copy;
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  const int width = 500, height = 300;
  const dim3 threads(kTile, kTile), grid((width + kTile - 1) / kTile, (height + kTile - 1) / kTile);
  std::vector<unsigned> image(width * height), found(image.size()), runs(grid.x * grid.y);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<unsigned>(i) * 2654435761u >> 8;
  const unsigned* in = on_device(image);
  unsigned* out = on_device(found);
  unsigned* blocks = on_device(runs);

  int wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    check(cudaMemset(out, 0xff, found.size() * sizeof(unsigned)), "cudaMemset");
    check(cudaMemset(blocks, 0, runs.size() * sizeof(unsigned)), "cudaMemset");
    blur<<<grid, threads>>>(in, out, width, height, blocks);
    check(cudaGetLastError(), "launch");
    check(cudaMemcpy(found.data(), out, found.size() * sizeof(unsigned), cudaMemcpyDeviceToHost), "blur");
    check(cudaMemcpy(runs.data(), blocks, runs.size() * sizeof(unsigned), cudaMemcpyDeviceToHost), "blur");
    for (unsigned count : runs) wrong += count != 1;
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) wrong += found[y * width + x] != expected(image, width, height, x, y);
    }
  }
  std::printf("preemptible: %d rounds of %u block-tasks, %d wrong\n", rounds, grid.x * grid.y, wrong);
  return wrong == 0 ? 0 : 3;
}
