// compat: cuFFT plans of many strided transforms in a work area of the program, and of three dimensions
// libs: cufft
// builds: both shared
#include "fft.h"

namespace {

/// Transforms of columns: element i of transform t is at i * batch + t.
void columns(int size, int batch) {
  const std::size_t count = static_cast<std::size_t>(size) * batch;
  const std::vector<float> real = samples(count);
  std::vector<cufftComplex> host(count), got(count);
  for (std::size_t i = 0; i < count; ++i) host[i] = {real[i], -real[i]};
  cufftComplex* data = nullptr;
  CHECK(cudaMalloc(&data, count * sizeof(cufftComplex)));
  CHECK(cudaMemcpy(data, host.data(), count * sizeof(cufftComplex), cudaMemcpyHostToDevice));
  cufftHandle plan;
  CHECK_ZERO(cufftCreate(&plan));
  CHECK_ZERO(cufftSetAutoAllocation(plan, 0));
  int lengths[] = {size};
  int embed[] = {size};
  std::size_t bytes = 0;
  CHECK_ZERO(cufftMakePlanMany(plan, 1, lengths, embed, batch, 1, embed, batch, 1, CUFFT_C2C, batch, &bytes));
  void* area = nullptr;
  CHECK(cudaMalloc(&area, bytes + 256));
  CHECK_ZERO(cufftSetWorkArea(plan, area));
  CHECK_ZERO(cufftExecC2C(plan, data, data, CUFFT_FORWARD));
  CHECK_ZERO(cufftExecC2C(plan, data, data, CUFFT_INVERSE));
  CHECK(cudaMemcpy(got.data(), data, count * sizeof(cufftComplex), cudaMemcpyDeviceToHost));
  std::vector<float> back(count);
  for (std::size_t i = 0; i < count; ++i) back[i] = got[i].x;
  std::printf("columns %d x %d\n", size, batch);
  print_samples("back", back, static_cast<std::size_t>(size));
  CHECK_ZERO(cufftDestroy(plan));
  CHECK(cudaFree(area));
  CHECK(cudaFree(data));
}

void cube(int size) {
  const std::size_t count = static_cast<std::size_t>(size) * size * size;
  std::vector<cufftDoubleComplex> host(count), got(count);
  for (std::size_t i = 0; i < count; ++i) host[i] = {sample_at(i), 0};
  cufftDoubleComplex* data = nullptr;
  CHECK(cudaMalloc(&data, count * sizeof(cufftDoubleComplex)));
  CHECK(cudaMemcpy(data, host.data(), count * sizeof(cufftDoubleComplex), cudaMemcpyHostToDevice));
  cufftHandle plan;
  CHECK_ZERO(cufftPlan3d(&plan, size, size, size, CUFFT_Z2Z));
  CHECK_ZERO(cufftExecZ2Z(plan, data, data, CUFFT_FORWARD));
  CHECK_ZERO(cufftExecZ2Z(plan, data, data, CUFFT_INVERSE));
  CHECK(cudaMemcpy(got.data(), data, count * sizeof(cufftDoubleComplex), cudaMemcpyDeviceToHost));
  std::vector<float> back(count);
  for (std::size_t i = 0; i < count; ++i) back[i] = static_cast<float>(got[i].x / static_cast<double>(count));
  std::printf("cube %d\n", size);
  print_samples("back", back, 1);
  CHECK_ZERO(cufftDestroy(plan));
  CHECK(cudaFree(data));
}

}  // namespace

int main() {
  for (int round = 0; round < 5; ++round) {
    columns(1024, 500);
    columns(243, 64);
    columns(4096, 100);
  }
  cube(64);
  cube(120);
  return 0;
}
