// compat: mipmapped textures: levels chosen by the kernel, between levels, and by gradients
#include "textures.h"

constexpr int kSide = 64, kLevels = 7;

__global__ void fetch(cudaTextureObject_t nearest, cudaTextureObject_t between, int count, int steps, float* fetched,
                      float* halves, std::uint32_t* mixed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int level = i % kLevels;
  const float x = (i / kLevels % kSide + 0.5f) / kSide, y = (i / (kLevels * kSide) % kSide + 0.5f) / kSide;
  keep(tex2DLod<float>(nearest, x, y, static_cast<float>(level)), i, steps, fetched, mixed);
  keep(tex2DLod<float>(between, x, y, level % (kLevels - 1) + 0.5f), i, steps, halves, mixed);
  // Gradients of four texels of the finest level are those of level 2.
  const float2 dx = make_float2(4.0f / kSide, 0), dy = make_float2(0, 4.0f / kSide);
  mixed[i] ^= __float_as_uint(tex2DGrad<float>(nearest, x, y, dx, dy));
}

int main() {
  const int count = work_threads();
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaMipmappedArray_t levels = nullptr;
  CHECK(cudaMallocMipmappedArray(&levels, &format, make_cudaExtent(kSide, kSide, 0), kLevels));
  for (int level = 0; level < kLevels; ++level) {
    const int side = kSide >> level;
    // One value per level: wherever it is read, it says from which level it came.
    const std::vector<float> values(side * side, static_cast<float>(8 << level));
    cudaArray_t array = nullptr;
    CHECK(cudaGetMipmappedArrayLevel(&array, levels, level));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, values.data(), side * sizeof(float), side * sizeof(float), side,
                              cudaMemcpyHostToDevice));
  }
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeMipmappedArray;
  resource.res.mipmap.mipmap = levels;
  cudaTextureDesc description = texture_description(cudaFilterModePoint, cudaAddressModeClamp, true);
  description.maxMipmapLevelClamp = kLevels - 1;
  description.mipmapFilterMode = cudaFilterModePoint;
  cudaTextureObject_t nearest = 0, between = 0;
  CHECK(cudaCreateTextureObject(&nearest, &resource, &description, nullptr));
  description.mipmapFilterMode = cudaFilterModeLinear;
  CHECK(cudaCreateTextureObject(&between, &resource, &description, nullptr));

  float *fetched = zeros<float>(count), *halves = zeros<float>(count);
  std::uint32_t* mixed = zeros<std::uint32_t>(count);
  for (int round = 0; round < work_rounds(); ++round) {
    fetch<<<(count + 255) / 256, 256>>>(nearest, between, count, work_steps(), fetched, halves, mixed);
  }
  CHECK(cudaGetLastError());
  std::vector<float> expected(count), expected_halves(count);
  for (int i = 0; i < count; ++i) {
    expected[i] = static_cast<float>(8 << i % kLevels);
    expected_halves[i] = 12.0f * (1 << i % kLevels % (kLevels - 1));
  }
  must_equal("levels", on_host(fetched, count).data(), expected.data(), count);
  must_equal("between levels", on_host(halves, count).data(), expected_halves.data(), count);
  print_device_hash("mipmaps", mixed, count);
  CHECK(cudaFreeMipmappedArray(levels));
}
