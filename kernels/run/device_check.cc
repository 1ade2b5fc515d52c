#include "kernels/run/device_check.h"

#include <array>

#include "ptx_images.h"

namespace gpuctl::bench {
namespace {
constexpr std::size_t kWordBytes = sizeof(std::uint32_t);
constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kWordsPerThread = 16;
}  // namespace

DeviceCheck::DeviceCheck(Workbench& bench)
    : bench_(bench),
      function_(load_kernel(kCountEqualPtx, "countEqual")),
      reference_(bench.reference().size() * kWordBytes),
      equal_(kWordBytes) {
  bench.upload(bench.reference(), reference_.address());
}

void DeviceCheck::poison(std::size_t output) {
  for (const Workbench::Area& area : bench_.areas(output)) {
    CUDA_CALL(cuMemsetD32Async, area.address, area.fill, area.words, stream_.get());
  }
  CUDA_CALL(cuStreamSynchronize, stream_.get());
}

std::optional<std::string> DeviceCheck::verify(std::size_t output) {
  CUdeviceptr found = bench_.output(output);
  CUdeviceptr expected = reference_.address();
  CUdeviceptr equal = equal_.address();
  auto words = static_cast<std::uint32_t>(bench_.reference().size());
  std::array<void*, 4> parameters = {&found, &expected, &equal, &words};
  CUDA_CALL(cuMemsetD32Async, equal, 0, 1, stream_.get());
  CUDA_CALL(cuLaunchKernel, function_, divide_up(words, kThreads * kWordsPerThread), 1, 1, kThreads, 1, 1, 0,
            stream_.get(), parameters.data(), nullptr);
  CUDA_CALL(cuMemcpyDtoHAsync_v2, count_.data(), equal, kWordBytes, stream_.get());
  CUDA_CALL(cuStreamSynchronize, stream_.get());
  if (*count_.data() == words) return std::nullopt;
  return std::to_string(*count_.data()) + " of " + std::to_string(words) + " words right, counted on the GPU";
}

}  // namespace gpuctl::bench
