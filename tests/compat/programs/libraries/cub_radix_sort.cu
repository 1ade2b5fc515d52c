// compat: CUB DeviceRadixSort of keys and of pairs, ascending and descending, of several sizes
#include <cub/device/device_radix_sort.cuh>

#include <algorithm>

#include "keys.h"

namespace {

void sorts(std::size_t size) {
  const int count = static_cast<int>(size);
  const std::vector<unsigned> host = keys(size);
  unsigned* in = upload(host);
  unsigned* out = upload(host);
  std::vector<unsigned> places(size);
  for (std::size_t i = 0; i < size; ++i) places[i] = static_cast<unsigned>(i);
  unsigned* values = upload(places);
  unsigned* sorted_values = upload(places);
  std::size_t bytes = 0, pair_bytes = 0;
  CHECK(cub::DeviceRadixSort::SortKeys(nullptr, bytes, in, out, count));
  CHECK(cub::DeviceRadixSort::SortPairsDescending(nullptr, pair_bytes, in, out, values, sorted_values, count, 4, 20));
  bytes = std::max(bytes, pair_bytes);
  void* temporary = nullptr;
  CHECK(cudaMalloc(&temporary, bytes + 1));

  for (int round = 0; round < 10; ++round) CHECK(cub::DeviceRadixSort::SortKeys(temporary, bytes, in, out, count));
  std::vector<unsigned> wanted = host;
  std::sort(wanted.begin(), wanted.end());
  compare("keys", download(out, size), wanted);

  for (int round = 0; round < 10; ++round)
    CHECK(cub::DeviceRadixSort::SortPairsDescending(temporary, bytes, in, out, values, sorted_values, count, 4, 20));
  const auto digits = [&](unsigned place) { return host[place] >> 4 & 0xffff; };
  std::stable_sort(places.begin(), places.end(), [&](unsigned a, unsigned b) { return digits(a) > digits(b); });
  compare("pairs", download(sorted_values, size), places);
  for (void* memory : {static_cast<void*>(in), static_cast<void*>(out), static_cast<void*>(values),
                       static_cast<void*>(sorted_values), temporary})
    CHECK(cudaFree(memory));
}

}  // namespace

int main() {
  for (const std::size_t size :
       {std::size_t{100}, std::size_t{5000}, std::size_t{65'536}, std::size_t{1'000'003}, std::size_t{1} << 22})
    sorts(size);
  return 0;
}
