// compat: CUB DeviceScan, DeviceSelect, DeviceReduce, DeviceRunLengthEncode and DeviceHistogram
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

#include <algorithm>
#include <numeric>

#include "keys.h"

namespace {

constexpr int kRounds = 10;

struct IsSmall {
  __host__ __device__ bool operator()(unsigned x) const { return x % 10 < 3; }
};

/// Asks how much temporary memory the call wants, then calls it `kRounds` times.
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

void all(std::size_t size) {
  const int count = static_cast<int>(size);
  const std::vector<unsigned> host = keys(size, 256);
  unsigned* in = upload(host);
  unsigned* out = upload(host);
  unsigned* lengths = upload(host);
  int* found = upload(std::vector<int>(1));

  repeat([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(temporary, bytes, in, out, count);
  });
  std::vector<unsigned> wanted(size);
  std::inclusive_scan(host.begin(), host.end(), wanted.begin());
  compare("scan", download(out, size), wanted);

  repeat([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceSelect::If(temporary, bytes, in, out, found, count, IsSmall());
  });
  wanted.clear();
  std::copy_if(host.begin(), host.end(), std::back_inserter(wanted), IsSmall());
  compare("select", download(out, static_cast<std::size_t>(download(found, 1)[0])), wanted);

  repeat([&](void* temporary, std::size_t& bytes) { return cub::DeviceReduce::Sum(temporary, bytes, in, out, count); });
  compare("sum", download(out, 1), {std::accumulate(host.begin(), host.end(), 0u)});
  repeat([&](void* temporary, std::size_t& bytes) { return cub::DeviceReduce::Max(temporary, bytes, in, out, count); });
  compare("max", download(out, 1), {*std::max_element(host.begin(), host.end())});

  std::vector<unsigned> runs(size), run_lengths;
  for (std::size_t i = 0; i < size; ++i) runs[i] = key_at(static_cast<unsigned>(i / 13)) % 5;
  CHECK(cudaMemcpy(in, runs.data(), size * sizeof(unsigned), cudaMemcpyHostToDevice));
  repeat([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceRunLengthEncode::Encode(temporary, bytes, in, out, lengths, found, count);
  });
  for (std::size_t i = 0; i < size; ++i)
    if (i == 0 || runs[i] != runs[i - 1])
      run_lengths.push_back(1);
    else
      ++run_lengths.back();
  compare("runs", download(lengths, static_cast<std::size_t>(download(found, 1)[0])), run_lengths);

  CHECK(cudaMemcpy(in, host.data(), size * sizeof(unsigned), cudaMemcpyHostToDevice));
  int* bins = upload(std::vector<int>(256));
  repeat([&](void* temporary, std::size_t& bytes) {
    return cub::DeviceHistogram::HistogramEven(temporary, bytes, in, bins, 257, 0u, 256u, count);
  });
  std::vector<int> wanted_bins(256);
  for (const unsigned value : host) ++wanted_bins[value];
  compare("histogram", download(bins, 256), wanted_bins);
  for (void* memory : {static_cast<void*>(in), static_cast<void*>(out), static_cast<void*>(lengths),
                       static_cast<void*>(found), static_cast<void*>(bins)})
    CHECK(cudaFree(memory));
}

}  // namespace

int main() {
  for (const std::size_t size : {std::size_t{100}, std::size_t{10'000}, std::size_t{1} << 20, std::size_t{3'000'001}})
    all(size);
  return 0;
}
