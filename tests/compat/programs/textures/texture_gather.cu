// compat: texture gather of four texels, each component
#include "textures.h"

constexpr int kSide = 48;

__global__ void gather(cudaTextureObject_t texture, int count, int steps, float4* first, std::uint32_t* mixed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  // A whole coordinate lies between texels x-1 and x.
  const float x = static_cast<float>(i % (kSide - 1) + 1), y = static_cast<float>(i / (kSide - 1) % (kSide - 1) + 1);
  const float4 a = tex2Dgather<float4>(texture, x, y, 0), b = tex2Dgather<float4>(texture, x, y, 1);
  const float4 c = tex2Dgather<float4>(texture, x, y, 2), d = tex2Dgather<float4>(texture, x, y, 3);
  first[i] = a;
  std::uint32_t value = mixed[i];
  for (const float4& v : {a, b, c, d}) {
    value = mix(value ^ __float_as_uint(v.x) ^ (__float_as_uint(v.y) >> 1) ^ (__float_as_uint(v.z) >> 2) ^
                    (__float_as_uint(v.w) >> 3),
                steps / 4);
  }
  mixed[i] = value;
}

int main() {
  const int count = work_threads();
  const std::vector<float> numbers = small_numbers(kSide * kSide * 4, 7);
  std::vector<float4> values(kSide * kSide);
  std::memcpy(values.data(), numbers.data(), values.size() * sizeof(float4));
  const cudaArray_t array =
      array_of(values, make_cudaExtent(kSide, kSide, 0), make_cudaExtent(kSide, kSide, 1), cudaArrayTextureGather);
  const cudaTextureObject_t texture = texture_of(array, texture_description());
  float4* first = zeros<float4>(count);
  std::uint32_t* mixed = zeros<std::uint32_t>(count);
  for (int round = 0; round < work_rounds(); ++round) {
    gather<<<(count + 255) / 256, 256>>>(texture, count, work_steps(), first, mixed);
  }
  CHECK(cudaGetLastError());
  std::vector<float4> expected(count);
  for (int i = 0; i < count; ++i) {
    const int x = i % (kSide - 1) + 1, y = i / (kSide - 1) % (kSide - 1) + 1;
    const auto at = [&](int column, int row) { return values[row * kSide + column].x; };
    expected[i] = make_float4(at(x - 1, y), at(x, y), at(x, y - 1), at(x - 1, y - 1));
  }
  must_equal("gathered", on_host(first, count).data(), expected.data(), count);
  print_device_hash("gather", mixed, count);
}
