// compat: thread block clusters and distributed shared memory, by attribute at the launch and by __cluster_dims__
#include <cooperative_groups.h>

#include <algorithm>

#include "mix.h"

namespace cg = cooperative_groups;

namespace {

constexpr int kThreads = 128;

/// Each block puts its numbers into shared memory and adds those of its neighbours in the cluster.
__device__ void exchange(unsigned* data, int turns) {
  __shared__ unsigned mine[kThreads];
  const cg::cluster_group cluster = cg::this_cluster();
  unsigned x = data[blockIdx.x * kThreads + threadIdx.x];
  for (int turn = 0; turn < turns; ++turn) {
    mine[threadIdx.x] = x;
    cluster.sync();
    const unsigned neighbour = (cluster.block_rank() + 1) % cluster.num_blocks();
    const unsigned* theirs = cluster.map_shared_rank(mine, static_cast<int>(neighbour));
    x = x * 3 + theirs[(threadIdx.x + 1) % kThreads];
    cluster.sync();
  }
  data[blockIdx.x * kThreads + threadIdx.x] = x;
}

__global__ void by_attribute(unsigned* data, int turns) {
  exchange(data, turns);
}
__global__ void __cluster_dims__(2, 1, 1) by_declaration(unsigned* data, int turns) {
  exchange(data, turns);
}

/// What the kernels leave, for the first clusters only.
std::vector<unsigned> expected(int size, int clusters, int turns) {
  std::vector<unsigned> x(static_cast<std::size_t>(size * clusters * kThreads)), next(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<unsigned>(i);
  for (int turn = 0; turn < turns; ++turn) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t block = i / kThreads, side = static_cast<std::size_t>(size);
      const std::size_t neighbour = block / side * side + (block % side + 1) % side;
      next[i] = x[i] * 3 + x[neighbour * kThreads + (i + 1) % kThreads];
    }
    x.swap(next);
  }
  return x;
}

}  // namespace

int main() {
  constexpr int kBlocks = 2048, kCount = kBlocks * kThreads, kTurns = 50, kLaunches = 20;
  unsigned* data = nullptr;
  CHECK(cudaMalloc(&data, kCount * sizeof(unsigned)));
  for (const unsigned size : {1u, 2u, 4u, 8u, 0u}) {
    number_kernel<<<blocks_for(kCount), 256>>>(data, kCount);
    for (int i = 0; i < kLaunches; ++i) {
      if (size == 0) {
        by_declaration<<<kBlocks, kThreads>>>(data, kTurns);
      } else {
        cudaLaunchAttribute attribute = {};
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim.x = size;
        attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
        cudaLaunchConfig_t configuration = {};
        configuration.gridDim = dim3(kBlocks);
        configuration.blockDim = dim3(kThreads);
        configuration.attrs = &attribute;
        configuration.numAttrs = 1;
        CHECK(cudaLaunchKernelEx(&configuration, by_attribute, data, kTurns));
      }
      CHECK(cudaGetLastError());
    }
    std::vector<unsigned> got(kCount);
    CHECK(cudaMemcpy(got.data(), data, kCount * sizeof(unsigned), cudaMemcpyDeviceToHost));
    const std::vector<unsigned> wanted = expected(size ? static_cast<int>(size) : 2, 3, kTurns * kLaunches);
    std::printf("clusters of %u %s\n", size ? size : 2,
                std::equal(wanted.begin(), wanted.end(), got.begin()) ? "right" : "WRONG");
    print_hash("data", got.data(), kCount * sizeof(unsigned));
  }
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 4;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t configuration = {};
  configuration.gridDim = dim3(6);
  configuration.blockDim = dim3(kThreads);
  configuration.attrs = &attribute;
  configuration.numAttrs = 1;
  std::printf("a grid that is no multiple: %s\n",
              cudaGetErrorName(cudaLaunchKernelEx(&configuration, by_attribute, data, kTurns)));
  cudaGetLastError();
  CHECK(cudaDeviceSynchronize());
  return 0;
}
