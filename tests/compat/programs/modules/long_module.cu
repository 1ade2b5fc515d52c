// compat: a module of two hundred kernels, of which the program uses none, one or all, and ends at once
// args: none
// args: one
// args: all
// soft: yes
#include <array>
#include <utility>

#include "mix.h"

namespace {

constexpr int kKernels = 200;

template <int N>
__global__ void kernel(unsigned* data) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned x = data[i];
#pragma unroll
  for (int turn = 0; turn < 16; ++turn) x = (x ^ (x >> (N % 13 + 1))) * (2654435761u + 2 * N) + turn * N;
  __shared__ unsigned words[64];
  words[threadIdx.x] = x;
  __syncthreads();
  data[i] = x + words[(threadIdx.x + N) % 64];
}

using Launch = void (*)(unsigned*, int);

template <int N>
void launch(unsigned* data, int blocks) {
  kernel<N><<<blocks, 64>>>(data);
  CHECK(cudaGetLastError());
}

template <int... N>
std::array<Launch, sizeof...(N)> launches(std::integer_sequence<int, N...>) {
  return {launch<N>...};
}

}  // namespace

int main(int argc, char** argv) {
  const char* which = argc > 1 ? argv[1] : "none";
  const bool small = on_software();
  const int blocks = small ? 2 : 512;
  const std::size_t count = static_cast<std::size_t>(blocks) * 64;
  unsigned* data = nullptr;
  CHECK(cudaMalloc(&data, count * sizeof(unsigned)));
  std::vector<unsigned> host(count);
  for (std::size_t i = 0; i < count; ++i) host[i] = static_cast<unsigned>(i);
  CHECK(cudaMemcpy(data, host.data(), count * sizeof(unsigned), cudaMemcpyHostToDevice));
  const auto all = launches(std::make_integer_sequence<int, kKernels>());
  if (std::strcmp(which, "one") == 0) all[123](data, blocks);
  if (std::strcmp(which, "all") == 0)
    for (const Launch one : all) one(data, blocks);
  std::vector<unsigned> got(128);
  CHECK(cudaMemcpy(got.data(), data, got.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
  print_hash(which, got.data(), got.size() * sizeof(unsigned));
  return 0;
}
