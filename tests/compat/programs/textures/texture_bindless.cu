// compat: many texture objects in an array that kernels get by pointer
#include "textures.h"

constexpr int kTextures = 96, kSide = 16;

__global__ void fetch(const cudaTextureObject_t* textures, int count, int steps, float* fetched, std::uint32_t* mixed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const cudaTextureObject_t texture = textures[i / 32 % kTextures];  // the same for a warp
  keep(tex2D<float>(texture, i % kSide + 0.5f, i / kSide % kSide + 0.5f), i, steps, fetched, mixed);
  const cudaTextureObject_t own = textures[i % kTextures];  // another in each lane
  mixed[i] += __float_as_uint(tex2D<float>(own, i % kSide + 0.5f, 3.5f));
}

int main() {
  const int count = work_threads();
  std::vector<cudaTextureObject_t> textures;
  std::vector<std::vector<float>> values;
  for (int i = 0; i < kTextures; ++i) {
    values.push_back(small_numbers(kSide * kSide, 100 + i));
    textures.push_back(texture_of(
        array_of(values.back(), make_cudaExtent(kSide, kSide, 0), make_cudaExtent(kSide, kSide, 1), cudaArrayDefault),
        texture_description()));
  }
  const cudaTextureObject_t* table = on_device(textures);
  float* fetched = zeros<float>(count);
  std::uint32_t* mixed = zeros<std::uint32_t>(count);
  for (int round = 0; round < work_rounds(); ++round) {
    fetch<<<(count + 255) / 256, 256>>>(table, count, work_steps(), fetched, mixed);
  }
  CHECK(cudaGetLastError());
  std::vector<float> expected(count);
  for (int i = 0; i < count; ++i) expected[i] = values[i / 32 % kTextures][i / kSide % kSide * kSide + i % kSide];
  must_equal("fetched", on_host(fetched, count).data(), expected.data(), count);
  print_device_hash("bindless", mixed, count);
  for (cudaTextureObject_t texture : textures) CHECK(cudaDestroyTextureObject(texture));
}
