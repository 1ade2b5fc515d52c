// compat: cuFFT with a load and a store callback, which NVRTC compiles to LTO code and cuFFT links
// libs: cufft nvrtc
// builds: both shared
#include <cufftXt.h>
#include <nvrtc.h>

#include <string>

#include "fft.h"

namespace {

constexpr const char* kLoad = R"(
extern "C" __device__ float2 load_doubled(void* data, unsigned long long offset, void* info, void* shared) {
  const float2 value = static_cast<float2*>(data)[offset];
  return make_float2(value.x * 2.0f, value.y * 2.0f);
}
)";

constexpr const char* kStore = R"(
extern "C" __device__ void store_counted(void* data, unsigned long long offset, float2 value, void* info, void* shared) {
  static_cast<float2*>(data)[offset] = value;
  atomicAdd(static_cast<unsigned*>(info), 1u);
}
)";

std::vector<char> lto_code(const char* source) {
  int device = 0, major = 0, minor = 0;
  CHECK(cudaGetDevice(&device));
  CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  const std::string architecture = "-arch=compute_" + std::to_string(major * 10 + minor);
  const char* options[] = {architecture.c_str(), "-dlto", "--relocatable-device-code=true", "-default-device"};
  nvrtcProgram program;
  CHECK_ZERO(nvrtcCreateProgram(&program, source, "callbacks.cu", 0, nullptr, nullptr));
  CHECK_ZERO(nvrtcCompileProgram(program, 4, options));
  std::size_t bytes = 0;
  CHECK_ZERO(nvrtcGetLTOIRSize(program, &bytes));
  std::vector<char> code(bytes);
  CHECK_ZERO(nvrtcGetLTOIR(program, code.data()));
  CHECK_ZERO(nvrtcDestroyProgram(&program));
  return code;
}

}  // namespace

int main() {
  constexpr int kSize = 4096, kBatch = 64, kRounds = 20;
  constexpr std::size_t kCount = static_cast<std::size_t>(kSize) * kBatch;
  const std::vector<float> real = samples(kCount);
  std::vector<cufftComplex> host(kCount), got(kCount);
  for (std::size_t i = 0; i < kCount; ++i) host[i] = {real[i], 0};
  cufftComplex *data = nullptr, *spectrum = nullptr;
  unsigned* stores = nullptr;
  CHECK(cudaMalloc(&data, kCount * sizeof(cufftComplex)));
  CHECK(cudaMalloc(&spectrum, kCount * sizeof(cufftComplex)));
  CHECK(cudaMalloc(&stores, sizeof(unsigned)));
  CHECK(cudaMemset(stores, 0, sizeof(unsigned)));
  CHECK(cudaMemcpy(data, host.data(), kCount * sizeof(cufftComplex), cudaMemcpyHostToDevice));

  const std::vector<char> load = lto_code(kLoad), store = lto_code(kStore);
  cufftHandle plan, back;
  CHECK_ZERO(cufftCreate(&plan));
  CHECK_ZERO(cufftXtSetJITCallback(plan, "load_doubled", load.data(), load.size(), CUFFT_CB_LD_COMPLEX, nullptr));
  void* info[] = {stores};
  CHECK_ZERO(cufftXtSetJITCallback(plan, "store_counted", store.data(), store.size(), CUFFT_CB_ST_COMPLEX, info));
  std::size_t bytes = 0;
  CHECK_ZERO(cufftMakePlan1d(plan, kSize, CUFFT_C2C, kBatch, &bytes));
  CHECK_ZERO(cufftPlan1d(&back, kSize, CUFFT_C2C, kBatch));
  for (int round = 0; round < kRounds; ++round) CHECK_ZERO(cufftExecC2C(plan, data, spectrum, CUFFT_FORWARD));
  CHECK_ZERO(cufftExecC2C(back, spectrum, spectrum, CUFFT_INVERSE));
  CHECK(cudaMemcpy(got.data(), spectrum, kCount * sizeof(cufftComplex), cudaMemcpyDeviceToHost));
  unsigned stored = 0;
  CHECK(cudaMemcpy(&stored, stores, sizeof stored, cudaMemcpyDeviceToHost));
  std::vector<float> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) values[i] = got[i].x;
  print_samples("doubled and back", values, 2 * static_cast<std::size_t>(kSize));
  std::printf("stores %s\n", stored == kCount * kRounds ? "right" : "WRONG");
  CHECK_ZERO(cufftDestroy(plan));
  CHECK_ZERO(cufftDestroy(back));
  return 0;
}
