// compat: texture objects over linear memory: floats, vectors of integers, normalised bytes
#include "textures.h"

__global__ void fetch(cudaTextureObject_t floats, cudaTextureObject_t integers, cudaTextureObject_t bytes, int texels,
                      int count, int steps, float* fetched, std::uint32_t* mixed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int at = static_cast<int>(mix(i, 1) % texels);
  const int4 whole = tex1Dfetch<int4>(integers, at);
  const float4 parts = tex1Dfetch<float4>(bytes, at);
  keep(tex1Dfetch<float>(floats, at), i, steps, fetched, mixed);
  mixed[i] ^= whole.x + 3 * whole.y + 5 * whole.z + 7 * whole.w;
  // A byte b is fetched as b / 255; times 255 and rounded it is b again.
  mixed[i] += __float2int_rn(parts.x * 255.0f) + 256 * __float2int_rn(parts.w * 255.0f);
}

template <class T>
cudaTextureObject_t linear(const std::vector<T>& values, cudaTextureReadMode mode) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = on_device(values);
  resource.res.linear.desc = cudaCreateChannelDesc<T>();
  resource.res.linear.sizeInBytes = values.size() * sizeof(T);
  cudaTextureDesc description{};
  description.readMode = mode;
  cudaTextureObject_t texture = 0;
  CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  return texture;
}

int main() {
  const int texels = 10007, count = work_threads();
  const std::vector<float> floats = small_numbers(texels, 1);
  std::vector<int4> integers(texels);
  std::vector<uchar4> bytes(texels);
  for (int i = 0; i < texels; ++i) {
    integers[i] = make_int4(i, -i, 3 * i, i * i);
    bytes[i] = make_uchar4(i % 256, i % 255, 0, i % 251);
  }
  const cudaTextureObject_t a = linear(floats, cudaReadModeElementType), b = linear(integers, cudaReadModeElementType),
                            c = linear(bytes, cudaReadModeNormalizedFloat);
  float* fetched = zeros<float>(count);
  std::uint32_t* mixed = zeros<std::uint32_t>(count);
  for (int round = 0; round < work_rounds(); ++round) {
    fetch<<<(count + 255) / 256, 256>>>(a, b, c, texels, count, work_steps(), fetched, mixed);
  }
  CHECK(cudaGetLastError());
  std::vector<float> expected(count);
  for (int i = 0; i < count; ++i) expected[i] = floats[mix(i, 1) % texels];
  must_equal("fetched", on_host(fetched, count).data(), expected.data(), count);
  print_device_hash("linear", mixed, count);
  for (cudaTextureObject_t texture : {a, b, c}) CHECK(cudaDestroyTextureObject(texture));
}
