// compat: Thrust reduce, reduce_by_key, scans, unique, partition and transform
#include <thrust/device_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

#include <algorithm>
#include <numeric>

#include "keys.h"

namespace {

struct Key {
  __host__ __device__ unsigned operator()(unsigned i) const { return key_at(i) % 1000; }
};

struct RunOf {
  __host__ __device__ unsigned operator()(unsigned i) const { return i / 37 + i / 1000; }
};

struct IsOdd {
  __host__ __device__ bool operator()(unsigned x) const { return x & 1; }
};

std::vector<unsigned> on_host(const thrust::device_vector<unsigned>& device, std::size_t count) {
  std::vector<unsigned> host(count);
  thrust::copy(device.begin(), device.begin() + static_cast<std::ptrdiff_t>(count), host.begin());
  return host;
}

void all(unsigned size) {
  std::vector<unsigned> host(size), runs(size);
  for (unsigned i = 0; i < size; ++i) host[i] = Key()(i), runs[i] = RunOf()(i);
  const thrust::counting_iterator<unsigned> from(0);
  thrust::device_vector<unsigned> values(size), keys(size), out(size), sums(size);
  thrust::transform(from, from + size, values.begin(), Key());
  thrust::transform(from, from + size, keys.begin(), RunOf());

  unsigned sum = 0;
  for (int round = 0; round < 20; ++round) sum += thrust::reduce(values.begin(), values.end());
  std::printf("sum %u %s\n", sum, sum == 20 * std::accumulate(host.begin(), host.end(), 0u) ? "right" : "WRONG");

  std::vector<unsigned> wanted(size);
  for (int round = 0; round < 10; ++round) thrust::inclusive_scan(values.begin(), values.end(), out.begin());
  std::inclusive_scan(host.begin(), host.end(), wanted.begin());
  compare("inclusive", on_host(out, size), wanted);
  for (int round = 0; round < 10; ++round) thrust::exclusive_scan(values.begin(), values.end(), out.begin(), 7u);
  std::exclusive_scan(host.begin(), host.end(), wanted.begin(), 7u);
  compare("exclusive", on_host(out, size), wanted);

  wanted.clear();
  for (unsigned i = 0; i < size; ++i)
    if (i == 0 || runs[i] != runs[i - 1])
      wanted.push_back(host[i]);
    else
      wanted.back() += host[i];
  std::size_t count = 0;
  for (int round = 0; round < 10; ++round)
    count = static_cast<std::size_t>(
        thrust::reduce_by_key(keys.begin(), keys.end(), values.begin(), out.begin(), sums.begin()).second -
        sums.begin());
  compare("by key", on_host(sums, count), wanted);

  count = static_cast<std::size_t>(thrust::unique(keys.begin(), keys.end()) - keys.begin());
  runs.erase(std::unique(runs.begin(), runs.end()), runs.end());
  compare("unique", on_host(keys, count), runs);

  const auto middle = thrust::stable_partition(values.begin(), values.end(), IsOdd());
  std::printf("odd %zu\n", static_cast<std::size_t>(middle - values.begin()));
  std::stable_partition(host.begin(), host.end(), IsOdd());
  compare("partition", on_host(values, size), host);
}

}  // namespace

int main() {
  for (const unsigned size : {1u, 5000u, 1u << 20, 2'500'001u}) all(size);
  return 0;
}
