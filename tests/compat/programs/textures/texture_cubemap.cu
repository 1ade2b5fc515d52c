// compat: cubemap textures, and layers of them
#include "textures.h"

constexpr int kSide = 16, kCubes = 3;

/// The direction that goes through the middle of texel (u, v) of a face; faces are +x, -x, +y, -y, +z, -z.
__host__ __device__ inline float3 direction(int face, int u, int v) {
  const float s = (2 * u + 1) / static_cast<float>(kSide) - 1, t = (2 * v + 1) / static_cast<float>(kSide) - 1;
  switch (face) {
    case 0:
      return make_float3(1, -t, -s);
    case 1:
      return make_float3(-1, -t, s);
    case 2:
      return make_float3(s, 1, t);
    case 3:
      return make_float3(s, -1, -t);
    case 4:
      return make_float3(s, -t, 1);
    default:
      return make_float3(-s, -t, -1);
  }
}

__global__ void fetch(cudaTextureObject_t cube, cudaTextureObject_t cubes, int count, int steps, float* from_cube,
                      float* from_cubes, std::uint32_t* mixed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int u = i % kSide, v = i / kSide % kSide, face = i / (kSide * kSide) % 6, layer = i % kCubes;
  const float3 d = direction(face, u, v);
  keep(texCubemap<float>(cube, d.x, d.y, d.z), i, steps, from_cube, mixed);
  keep(texCubemapLayered<float>(cubes, d.x, d.y, d.z, layer), i, steps, from_cubes, mixed);
}

int main() {
  const int count = work_threads(), texels = kSide * kSide * 6;
  const std::vector<float> values = small_numbers(texels * kCubes, 6);
  const std::vector<float> first(values.begin(), values.begin() + texels);
  const cudaExtent one = make_cudaExtent(kSide, kSide, 6), all = make_cudaExtent(kSide, kSide, 6 * kCubes);
  const cudaArray_t cube_array = array_of(first, one, one, cudaArrayCubemap);
  const cudaArray_t cubes_array = array_of(values, all, all, cudaArrayCubemap | cudaArrayLayered);
  const cudaTextureDesc description = texture_description(cudaFilterModePoint, cudaAddressModeClamp, true);
  const cudaTextureObject_t cube = texture_of(cube_array, description), cubes = texture_of(cubes_array, description);
  float *from_cube = zeros<float>(count), *from_cubes = zeros<float>(count);
  std::uint32_t* mixed = zeros<std::uint32_t>(count);
  for (int round = 0; round < work_rounds(); ++round) {
    fetch<<<(count + 255) / 256, 256>>>(cube, cubes, count, work_steps(), from_cube, from_cubes, mixed);
  }
  CHECK(cudaGetLastError());
  std::vector<float> expected_cube(count), expected_cubes(count);
  for (int i = 0; i < count; ++i) {
    expected_cube[i] = values[i % texels];
    expected_cubes[i] = values[i % kCubes * texels + i % texels];
  }
  must_equal("cubemap", on_host(from_cube, count).data(), expected_cube.data(), count);
  must_equal("layered cubemap", on_host(from_cubes, count).data(), expected_cubes.data(), count);
  print_device_hash("cubemaps", mixed, count);
}
