// compat: cuRAND from the host: XORWOW, Philox, MRG32k3a and Sobol numbers from a seed, in a stream
// libs: curand
// builds: both shared
#include <curand.h>

#include <vector>

#include "check.h"

namespace {

constexpr std::size_t kCount = 1 << 20;

void numbers(const char* name, curandRngType_t type, bool pseudo) {
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  curandGenerator_t generator;
  CHECK_ZERO(curandCreateGenerator(&generator, type));
  CHECK_ZERO(curandSetStream(generator, stream));
  if (pseudo) {
    CHECK_ZERO(curandSetPseudoRandomGeneratorSeed(generator, 20240607));
    if (type == CURAND_RNG_PSEUDO_XORWOW)
      CHECK_ZERO(curandSetGeneratorOrdering(generator, CURAND_ORDERING_PSEUDO_LEGACY));
  } else {
    CHECK_ZERO(curandSetQuasiRandomGeneratorDimensions(generator, 4));
  }
  unsigned* integers = nullptr;
  float* floats = nullptr;
  CHECK(cudaMalloc(&integers, kCount * sizeof(unsigned)));
  CHECK(cudaMalloc(&floats, kCount * sizeof(float)));
  for (int round = 0; round < 20; ++round) {
    CHECK_ZERO(curandGenerate(generator, integers, kCount));
    CHECK_ZERO(curandGenerateUniform(generator, floats, kCount));
  }
  CHECK(cudaStreamSynchronize(stream));
  std::vector<unsigned> whole(kCount);
  std::vector<float> parts(kCount);
  CHECK(cudaMemcpy(whole.data(), integers, kCount * sizeof(unsigned), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(parts.data(), floats, kCount * sizeof(float), cudaMemcpyDeviceToHost));
  std::size_t outside = 0;
  double sum = 0;
  for (const float value : parts) outside += !(value > 0 && value <= 1), sum += value;
  const double mean = sum / kCount;
  std::printf("%s %s\n", name, outside == 0 && mean > 0.49 && mean < 0.51 ? "right" : "WRONG");
  print_hash("integers", whole.data(), kCount * sizeof(unsigned));
  print_hash("uniform", parts.data(), kCount * sizeof(float));
  CHECK_ZERO(curandDestroyGenerator(generator));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(integers));
  CHECK(cudaFree(floats));
}

}  // namespace

int main() {
  numbers("xorwow", CURAND_RNG_PSEUDO_XORWOW, true);
  numbers("philox", CURAND_RNG_PSEUDO_PHILOX4_32_10, true);
  numbers("mrg32k3a", CURAND_RNG_PSEUDO_MRG32K3A, true);
  numbers("sobol32", CURAND_RNG_QUASI_SOBOL32, false);
  return 0;
}
