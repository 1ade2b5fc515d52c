// compat: Thrust sorts of several sizes: radix sorts of keys and pairs, merge sorts with a comparison of the program
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>

#include <algorithm>

#include "keys.h"

namespace {

/// Not one that Thrust sorts by digits.
struct ByLowBits {
  __host__ __device__ bool operator()(unsigned a, unsigned b) const {
    return (a & 0xffff) != (b & 0xffff) ? (a & 0xffff) < (b & 0xffff) : a > b;
  }
};

std::vector<unsigned> on_host(const thrust::device_vector<unsigned>& device) {
  std::vector<unsigned> host(device.size());
  thrust::copy(device.begin(), device.end(), host.begin());
  return host;
}

void sorts(std::size_t size) {
  const std::vector<unsigned> host = keys(size);
  std::vector<unsigned> wanted = host;
  std::sort(wanted.begin(), wanted.end());
  thrust::device_vector<unsigned> device;
  for (int round = 0; round < 5; ++round) {
    device = host;
    thrust::sort(device.begin(), device.end());
  }
  compare("radix", on_host(device), wanted);

  std::sort(wanted.begin(), wanted.end(), ByLowBits());
  for (int round = 0; round < 5; ++round) {
    device = host;
    thrust::sort(device.begin(), device.end(), ByLowBits());
  }
  compare("merge", on_host(device), wanted);

  const std::vector<unsigned> few = keys(size, 100);
  std::vector<unsigned> order(size);
  for (std::size_t i = 0; i < size; ++i) order[i] = static_cast<unsigned>(i);
  std::stable_sort(order.begin(), order.end(), [&](unsigned a, unsigned b) { return few[a] < few[b]; });
  device = few;
  thrust::device_vector<unsigned> values(size);
  thrust::sequence(values.begin(), values.end());
  thrust::stable_sort_by_key(device.begin(), device.end(), values.begin());
  compare("by key", on_host(values), order);
}

}  // namespace

int main() {
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{1000}, std::size_t{100'003}, std::size_t{1} << 20, std::size_t{3'000'000}})
    sorts(size);
  return 0;
}
