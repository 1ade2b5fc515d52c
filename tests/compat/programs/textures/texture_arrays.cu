// compat: textures over CUDA arrays of one, two and three dimensions, point and linear filtering
#include "textures.h"

constexpr int kSide = 32;

__global__ void fetch_1d(cudaTextureObject_t texture, float step, int count, int steps, float* fetched,
                         std::uint32_t* mixed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) keep(tex1D<float>(texture, (i % 128) * step + 0.5f), i, steps, fetched, mixed);
}

__global__ void fetch_2d(cudaTextureObject_t texture, float step, int count, int steps, float* fetched,
                         std::uint32_t* mixed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float x = (i % 128) * step + 0.5f, y = (i / 128 % 128) * step + 0.5f;
  if (i < count) keep(tex2D<float>(texture, x, y), i, steps, fetched, mixed);
}

__global__ void fetch_3d(cudaTextureObject_t texture, float step, int count, int steps, float* fetched,
                         std::uint32_t* mixed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float x = (i % 128) * step + 0.5f, y = (i / 128 % 64) * step + 0.5f, z = (i / 8192 % 64) * step + 0.5f;
  if (i < count) keep(tex3D<float>(texture, x, y, z), i, steps, fetched, mixed);
}

int main() {
  const int count = work_threads(), grid = (count + 255) / 256, rounds = work_rounds() / 6 + 1;
  const std::vector<float> values = small_numbers(kSide * kSide * kSide, 3);
  const std::vector<float> line(values.begin(), values.begin() + kSide);
  const cudaArray_t one = array_of(line, make_cudaExtent(kSide, 0, 0), make_cudaExtent(kSide, 1, 1), cudaArrayDefault);
  const cudaArray_t two =
      array_of(values, make_cudaExtent(kSide, kSide, 0), make_cudaExtent(kSide, kSide, 1), cudaArrayDefault);
  const cudaArray_t three =
      array_of(values, make_cudaExtent(kSide, kSide, kSide), make_cudaExtent(kSide, kSide, kSide), cudaArrayDefault);
  float* fetched = zeros<float>(count);
  std::uint32_t* mixed = zeros<std::uint32_t>(count);

  for (const bool linear : {false, true}) {
    const cudaTextureDesc description = texture_description(linear ? cudaFilterModeLinear : cudaFilterModePoint);
    const float step = linear ? 0.25f : 1.0f;  // quarters of a texel are exact in the hardware's weights
    const cudaTextureObject_t textures[] = {texture_of(one, description), texture_of(two, description),
                                            texture_of(three, description)};
    for (int round = 0; round < rounds; ++round) {
      fetch_1d<<<grid, 256>>>(textures[0], step, count, work_steps(), fetched, mixed);
    }
    print_device_hash(linear ? "1-D linear" : "1-D point", fetched, count);
    for (int round = 0; round < rounds; ++round) {
      fetch_2d<<<grid, 256>>>(textures[1], step, count, work_steps(), fetched, mixed);
    }
    print_device_hash(linear ? "2-D linear" : "2-D point", fetched, count);
    if (!linear) {
      std::vector<float> expected(count);
      for (int i = 0; i < count; ++i) {
        const int x = i % 128, y = i / 128 % 128;
        expected[i] = values[(y < kSide ? y : kSide - 1) * kSide + (x < kSide ? x : kSide - 1)];
      }
      must_equal("2-D point", on_host(fetched, count).data(), expected.data(), count);
    }
    for (int round = 0; round < rounds; ++round) {
      fetch_3d<<<grid, 256>>>(textures[2], step, count, work_steps(), fetched, mixed);
    }
    CHECK(cudaGetLastError());
    print_device_hash(linear ? "3-D linear" : "3-D point", fetched, count);
    print_device_hash("mixed", mixed, count);
    for (cudaTextureObject_t texture : textures) CHECK(cudaDestroyTextureObject(texture));
  }
  for (cudaArray_t array : {one, two, three}) CHECK(cudaFreeArray(array));
}
