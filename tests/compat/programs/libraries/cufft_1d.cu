// compat: cuFFT plans of one dimension of several sizes, complex to complex and real to complex
// libs: cufft
// builds: both shared
#include "fft.h"

namespace {

constexpr int kRounds = 10;

/// There and back in place, so that each round begins with the samples times the size to a power; scaled by the host.
void complex_plan(int size, int batch) {
  const std::size_t count = static_cast<std::size_t>(size) * batch;
  const std::vector<float> real = samples(count);
  std::vector<cufftComplex> host(count), got(count);
  for (std::size_t i = 0; i < count; ++i) host[i] = {real[i], 0};
  cufftComplex *data = nullptr, *spectrum = nullptr;
  CHECK(cudaMalloc(&data, count * sizeof(cufftComplex)));
  CHECK(cudaMalloc(&spectrum, count * sizeof(cufftComplex)));
  CHECK(cudaMemcpy(data, host.data(), count * sizeof(cufftComplex), cudaMemcpyHostToDevice));
  cufftHandle plan;
  CHECK_ZERO(cufftPlan1d(&plan, size, CUFFT_C2C, batch));
  for (int round = 0; round < kRounds; ++round) CHECK_ZERO(cufftExecC2C(plan, data, spectrum, CUFFT_FORWARD));
  CHECK_ZERO(cufftExecC2C(plan, spectrum, spectrum, CUFFT_INVERSE));
  CHECK(cudaMemcpy(got.data(), spectrum, count * sizeof(cufftComplex), cudaMemcpyDeviceToHost));
  std::vector<float> back(count);
  for (std::size_t i = 0; i < count; ++i) back[i] = got[i].x;
  std::printf("complex %d x %d\n", size, batch);
  print_samples("back", back, static_cast<std::size_t>(size));
  CHECK_ZERO(cufftDestroy(plan));
  CHECK(cudaFree(data));
  CHECK(cudaFree(spectrum));
}

void real_plan(int size) {
  const std::vector<float> host = samples(static_cast<std::size_t>(size));
  float* data = nullptr;
  cufftComplex* spectrum = nullptr;
  CHECK(cudaMalloc(&data, host.size() * sizeof(float)));
  CHECK(cudaMalloc(&spectrum, (static_cast<std::size_t>(size) / 2 + 1) * sizeof(cufftComplex)));
  CHECK(cudaMemcpy(data, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  cufftHandle forward, back;
  CHECK_ZERO(cufftPlan1d(&forward, size, CUFFT_R2C, 1));
  CHECK_ZERO(cufftPlan1d(&back, size, CUFFT_C2R, 1));
  for (int round = 0; round < kRounds; ++round) CHECK_ZERO(cufftExecR2C(forward, data, spectrum));
  cufftComplex mean;
  CHECK(cudaMemcpy(&mean, spectrum, sizeof mean, cudaMemcpyDeviceToHost));
  long long sum = 0;
  for (const float value : host) sum += static_cast<long long>(value);
  std::printf("real %d, sum %s\n", size,
              std::fabs(mean.x - static_cast<float>(sum)) < 1 + std::fabs(mean.x) * 1e-4f ? "right" : "WRONG");
  CHECK(cudaMemset(data, 0, host.size() * sizeof(float)));
  CHECK_ZERO(cufftExecC2R(back, spectrum, data));
  std::vector<float> got(host.size());
  CHECK(cudaMemcpy(got.data(), data, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
  print_samples("back", got, static_cast<std::size_t>(size));
  CHECK_ZERO(cufftDestroy(forward));
  CHECK_ZERO(cufftDestroy(back));
  CHECK(cudaFree(data));
  CHECK(cudaFree(spectrum));
}

}  // namespace

int main() {
  for (const int size : {8, 256, 1000, 1009, 4096, 65536, 1 << 20, 177147}) complex_plan(size, 1);
  complex_plan(512, 1000);
  complex_plan(60, 333);
  for (const int size : {64, 3000, 1 << 18, 1 << 22}) real_plan(size);
  return 0;
}
