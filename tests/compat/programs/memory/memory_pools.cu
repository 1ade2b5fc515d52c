// compat: memory pools: the default one, one of the program's own, thresholds and attributes
#include "advance.h"

int main() {
  const int count = work_threads(), steps = work_steps(), rounds = work_rounds();
  const std::size_t bytes = count * sizeof(std::uint32_t);
  cudaMemPool_t usual = nullptr, own = nullptr;
  CHECK(cudaDeviceGetDefaultMemPool(&usual, 0));
  std::uint64_t threshold = 64 << 20;
  CHECK(cudaMemPoolSetAttribute(usual, cudaMemPoolAttrReleaseThreshold, &threshold));
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  CHECK(cudaMemPoolCreate(&own, &properties));
  int reuse = 0;
  CHECK(cudaMemPoolSetAttribute(own, cudaMemPoolReuseAllowOpportunistic, &reuse));
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::uint32_t* result = zeros<std::uint32_t>(count);
  CHECK(cudaDeviceSynchronize());
  for (int round = 0; round < rounds; ++round) {
    std::uint32_t *a = nullptr, *b = nullptr;
    CHECK(cudaMallocAsync(&a, bytes, stream));
    CHECK(cudaMallocFromPoolAsync(&b, bytes, own, stream));
    CHECK(cudaMemcpyAsync(a, result, bytes, cudaMemcpyDeviceToDevice, stream));
    launch_advance(a, count, steps, round, stream);
    CHECK(cudaMemcpyAsync(b, a, bytes, cudaMemcpyDeviceToDevice, stream));
    CHECK(cudaFreeAsync(a, stream));
    CHECK(cudaMemcpyAsync(result, b, bytes, cudaMemcpyDeviceToDevice, stream));
    CHECK(cudaFreeAsync(b, stream));
  }
  CHECK(cudaStreamSynchronize(stream));
  must_have_advanced("pools", on_host(result, count).data(), count, steps, rounds);
  print_device_hash("pools", result, count);
  std::uint64_t used = 1, read = 0;
  CHECK(cudaMemPoolGetAttribute(own, cudaMemPoolAttrUsedMemCurrent, &used));
  CHECK(cudaMemPoolGetAttribute(usual, cudaMemPoolAttrReleaseThreshold, &read));
  std::printf("used %llu threshold %llu\n", static_cast<unsigned long long>(used),
              static_cast<unsigned long long>(read));
  CHECK(cudaMemPoolTrimTo(own, 0));
  CHECK(cudaMemPoolDestroy(own));
}
