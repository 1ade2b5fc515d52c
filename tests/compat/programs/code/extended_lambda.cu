// compat: kernels made of templates and extended lambdas with captures, for device and for both sides
// flags: --extended-lambda
// soft: yes
#include "work.h"

template <int kBlock, class F>
__global__ void for_each(int count, F f) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i < count) f(i);
}

template <int kBlock, class F>
void launch(int count, F f) {
  for_each<kBlock><<<(count + kBlock - 1) / kBlock, kBlock>>>(count, f);
  CHECK(cudaGetLastError());
}

template <class T>
struct Pair {
  T first, second;
};

int main() {
  const int count = work_threads(), steps = work_steps(), rounds = work_rounds() / 2 + 1;
  std::uint32_t* values = zeros<std::uint32_t>(count);
  std::vector<std::uint32_t> expected(100, 0);
  for (int round = 0; round < rounds; ++round) {
    const Pair<int> pair{round, steps};
    launch<128>(count, [=] __device__(int i) { values[i] = mix(values[i] + i + pair.first, pair.second); });
    const auto both = [pair] __host__ __device__(std::uint32_t value) { return value * 5 + pair.first; };
    launch<256>(count, [=] __device__(int i) { values[i] = both(values[i]); });
    launch<64>(count / 2, [=] __device__(int i) {
      const auto inner = [&](int k) { return values[i + k] ^ k; };
      values[i] = inner(0) + 1;
    });
    for (int i = 0; i < 100; ++i) expected[i] = (both(mix(expected[i] + i + round, steps)) ^ 0) + 1;
  }
  must_equal("lambdas", on_host(values, 100).data(), expected.data(), 100);
  print_device_hash("lambdas", values, count);
}
