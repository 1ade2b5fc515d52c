// compat: cuFFT plan of two dimensions, 2048 x 2048 real to complex and back
// libs: cufft
// builds: both shared
#include "fft.h"

int main() {
  constexpr int kSize = 2048, kRounds = 20;
  constexpr std::size_t kCount = static_cast<std::size_t>(kSize) * kSize;
  const std::vector<float> host = samples(kCount);
  float* data = nullptr;
  cufftComplex* spectrum = nullptr;
  CHECK(cudaMalloc(&data, kCount * sizeof(float)));
  CHECK(cudaMalloc(&spectrum, static_cast<std::size_t>(kSize) * (kSize / 2 + 1) * sizeof(cufftComplex)));
  CHECK(cudaMemcpy(data, host.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
  cufftHandle forward, back;
  CHECK_ZERO(cufftPlan2d(&forward, kSize, kSize, CUFFT_R2C));
  CHECK_ZERO(cufftPlan2d(&back, kSize, kSize, CUFFT_C2R));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK_ZERO(cufftSetStream(forward, stream));
  CHECK_ZERO(cufftSetStream(back, stream));
  CHECK(cudaDeviceSynchronize());
  for (int round = 0; round < kRounds; ++round) CHECK_ZERO(cufftExecR2C(forward, data, spectrum));
  CHECK(cudaMemsetAsync(data, 0, kCount * sizeof(float), stream));
  CHECK_ZERO(cufftExecC2R(back, spectrum, data));
  CHECK(cudaStreamSynchronize(stream));
  std::vector<float> got(kCount);
  CHECK(cudaMemcpy(got.data(), data, kCount * sizeof(float), cudaMemcpyDeviceToHost));
  print_samples("2048x2048", got, kCount);
  CHECK_ZERO(cufftDestroy(forward));
  CHECK_ZERO(cufftDestroy(back));
  CHECK(cudaStreamDestroy(stream));
  return 0;
}
