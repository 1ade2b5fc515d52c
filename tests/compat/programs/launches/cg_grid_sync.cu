// compat: cooperative launches: grid.sync() in a loop, on as many blocks as fit and on a few
#include <cooperative_groups.h>

#include <algorithm>

#include "mix.h"

namespace cg = cooperative_groups;

namespace {

__host__ __device__ unsigned step(unsigned left, unsigned here, unsigned right) {
  return (left * 3 + here * 5 + right * 7) ^ (here >> 9);
}

/// `steps` of a ring in two buffers; every step reads what others wrote in the one before.
__global__ void ring(unsigned* a, unsigned* b, int count, int steps) {
  const cg::grid_group grid = cg::this_grid();
  for (int turn = 0; turn < steps; ++turn) {
    for (unsigned i = static_cast<unsigned>(grid.thread_rank()); i < static_cast<unsigned>(count);
         i += static_cast<unsigned>(grid.size())) {
      const unsigned left = i == 0 ? static_cast<unsigned>(count) - 1 : i - 1,
                     right = i + 1 == static_cast<unsigned>(count) ? 0 : i + 1;
      b[i] = step(a[left], a[i], a[right]);
    }
    grid.sync();
    unsigned* other = a;
    a = b;
    b = other;
  }
}

}  // namespace

int main() {
  const bool small = on_software();
  int count = small ? 4096 : 1 << 16, steps = small ? 6 : 100;
  const int launches = small ? 2 : 5;
  int device = 0, cooperative = 0, processors = 0, per_processor = 0;
  CHECK(cudaGetDevice(&device));
  CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device));
  CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, ring, 256, 0));
  std::printf("cooperative %d\n", cooperative);
  unsigned *a = nullptr, *b = nullptr;
  CHECK(cudaMalloc(&a, static_cast<std::size_t>(count) * sizeof(unsigned)));
  CHECK(cudaMalloc(&b, static_cast<std::size_t>(count) * sizeof(unsigned)));
  number_kernel<<<blocks_for(count), 256>>>(a, count);
  std::vector<unsigned> now(static_cast<std::size_t>(count)), next(now.size()), got(now.size());
  for (std::size_t i = 0; i < now.size(); ++i) now[i] = static_cast<unsigned>(i);
  void* arguments[] = {&a, &b, &count, &steps};
  for (const int blocks : {1, 4, processors * per_processor}) {
    for (int i = 0; i < launches; ++i)
      CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(ring), dim3(static_cast<unsigned>(blocks)), dim3(256),
                                        arguments, 0, nullptr));
    CHECK(cudaDeviceSynchronize());
    for (int turn = 0; turn < steps * launches; ++turn) {
      for (std::size_t i = 0; i < now.size(); ++i)
        next[i] = step(now[i == 0 ? now.size() - 1 : i - 1], now[i], now[i + 1 == now.size() ? 0 : i + 1]);
      std::swap(now, next);
    }
    CHECK(cudaMemcpy(got.data(), a, got.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
    std::printf("%s %s\n", blocks <= 4 ? (blocks == 1 ? "one block" : "four blocks") : "all that fit",
                got == now ? "right" : "WRONG");
    print_hash("ring", got.data(), got.size() * sizeof(unsigned));
  }
  const cudaError_t refused =
      cudaLaunchCooperativeKernel(reinterpret_cast<void*>(ring), dim3(1 << 20), dim3(256), arguments, 0, nullptr);
  std::printf("too many: %s\n", cudaGetErrorName(refused));
  cudaGetLastError();
  CHECK(cudaDeviceSynchronize());
  return 0;
}
