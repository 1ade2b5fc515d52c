// compat: blocks that meet at grid.sync() in a loop to add and decide, launched by attribute in two streams
#include <cooperative_groups.h>

#include "mix.h"

namespace cg = cooperative_groups;

namespace {

/// Halves the numbers above the mean until none is, or `most` times; words: sum, above, turns.
__global__ void level(unsigned* data, int count, unsigned long long* words, int most) {
  const cg::grid_group grid = cg::this_grid();
  for (int turn = 0; turn < most; ++turn) {
    if (grid.thread_rank() == 0) words[0] = words[1] = 0;
    grid.sync();
    unsigned long long sum = 0, above = 0;
    for (unsigned long long i = grid.thread_rank(); i < static_cast<unsigned long long>(count); i += grid.size())
      sum += data[i];
    atomicAdd(&words[0], sum);
    grid.sync();
    const unsigned long long mean = words[0] / static_cast<unsigned long long>(count);
    for (unsigned long long i = grid.thread_rank(); i < static_cast<unsigned long long>(count); i += grid.size())
      if (data[i] > mean) {
        data[i] /= 2;
        ++above;
      }
    atomicAdd(&words[1], above);
    grid.sync();
    if (words[1] == 0) break;
    if (grid.thread_rank() == 0) ++words[2];
    grid.sync();
  }
}

}  // namespace

int main() {
  const bool small = on_software();
  int count = small ? 2048 : 1 << 17, most = small ? 5 : 60;
  std::vector<unsigned> host(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = mix(static_cast<unsigned>(i), 1, 3) >> 4;
  unsigned* data[2];
  unsigned long long* words[2];
  cudaStream_t streams[2];
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    CHECK(cudaMalloc(&data[i], host.size() * sizeof(unsigned)));
    CHECK(cudaMalloc(&words[i], 3 * sizeof(unsigned long long)));
    CHECK(cudaMemset(words[i], 0, 3 * sizeof(unsigned long long)));
    CHECK(cudaMemcpy(data[i], host.data(), host.size() * sizeof(unsigned), cudaMemcpyHostToDevice));
  }
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < 2; ++i) {
    cudaLaunchAttribute cooperative = {};
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = 1;
    cudaLaunchConfig_t configuration = {};
    configuration.gridDim = dim3(4);
    configuration.blockDim = dim3(128);
    configuration.stream = streams[i];
    configuration.attrs = &cooperative;
    configuration.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&configuration, level, data[i], count, words[i], most));
  }
  CHECK(cudaDeviceSynchronize());
  unsigned long long turns = 0;
  for (int turn = 0; turn < most; ++turn) {
    unsigned long long sum = 0, above = 0;
    for (const unsigned value : host) sum += value;
    for (unsigned& value : host)
      if (value > sum / host.size()) value /= 2, ++above;
    if (above == 0) break;
    ++turns;
  }
  for (int i = 0; i < 2; ++i) {
    std::vector<unsigned> got(host.size());
    unsigned long long counted[3];
    CHECK(cudaMemcpy(got.data(), data[i], got.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(counted, words[i], sizeof counted, cudaMemcpyDeviceToHost));
    std::printf("turns %llu, %s\n", counted[2], counted[2] == turns && got == host ? "right" : "WRONG");
    print_hash("levelled", got.data(), got.size() * sizeof(unsigned));
  }
  return 0;
}
