// compat: CUB sorts and reductions of segments of many lengths
#include <cub/device/device_segmented_radix_sort.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_segmented_sort.cuh>

#include <algorithm>
#include <numeric>

#include "keys.h"

namespace {

constexpr int kRounds = 5, kSegments = 3000;

template <typename Call>
void repeat(Call call) {
  std::size_t bytes = 0;
  CHECK(call(nullptr, bytes));
  void* temporary = nullptr;
  CHECK(cudaMalloc(&temporary, bytes + 1));
  for (int round = 0; round < kRounds; ++round) CHECK(call(temporary, bytes));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(temporary));
}

}  // namespace

int main() {
  std::vector<int> offsets{0};
  for (unsigned i = 0; i < kSegments; ++i) {
    const unsigned key = key_at(i);
    offsets.push_back(offsets.back() + static_cast<int>(key % 100 == 0 ? key % 20'000
                                                        : key % 4 == 0 ? key % 900
                                                                       : key % 20));
  }
  const std::size_t size = static_cast<std::size_t>(offsets.back());
  const int count = offsets.back();
  const std::vector<unsigned> host = keys(size);
  std::vector<unsigned> wanted = host, sums;
  for (int i = 0; i < kSegments; ++i) {
    sums.push_back(std::accumulate(host.begin() + offsets[i], host.begin() + offsets[i + 1], 0u));
    std::sort(wanted.begin() + offsets[i], wanted.begin() + offsets[i + 1]);
  }
  unsigned* in = upload(host);
  unsigned* out = upload(host);
  int* at = upload(offsets);

  repeat([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceSegmentedSort::SortKeys(temporary, bytes, in, out, count, kSegments, at, at + 1);
  });
  compare("segmented sort", download(out, size), wanted);
  CHECK(cudaMemset(out, 0, size * sizeof(unsigned)));
  repeat([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceSegmentedRadixSort::SortKeys(temporary, bytes, in, out, count, kSegments, at, at + 1);
  });
  compare("segmented radix sort", download(out, size), wanted);
  repeat([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceSegmentedReduce::Sum(temporary, bytes, in, out, kSegments, at, at + 1);
  });
  compare("segmented sum", download(out, kSegments), sums);
  return 0;
}
