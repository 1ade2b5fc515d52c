// compat: 2-D textures over pitched memory: point and linear filtering, clamp, border, wrap and mirror
#include "textures.h"

constexpr int kWidth = 120, kHeight = 75;

__global__ void fetch(cudaTextureObject_t texture, float from, float step_x, float step_y, int columns, int count,
                      int steps, float* fetched, std::uint32_t* mixed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float x = __fmaf_rn(static_cast<float>(i % columns), step_x, from);
  const float y = __fmaf_rn(static_cast<float>(i / columns % columns), step_y, from);
  keep(tex2D<float>(texture, x, y), i, steps, fetched, mixed);
}

float* image = nullptr;
std::size_t pitch = 0;

cudaTextureObject_t pitched(const cudaTextureDesc& description) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D.devPtr = image;
  resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
  resource.res.pitch2D.width = kWidth;
  resource.res.pitch2D.height = kHeight;
  resource.res.pitch2D.pitchInBytes = pitch;
  cudaTextureObject_t texture = 0;
  CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  return texture;
}

int main() {
  const int count = work_threads(), rounds = work_rounds() / 3 + 1;
  const std::vector<float> values = small_numbers(kWidth * kHeight, 2);
  CHECK(cudaMallocPitch(&image, &pitch, kWidth * sizeof(float), kHeight));
  CHECK(cudaMemcpy2D(image, pitch, values.data(), kWidth * sizeof(float), kWidth * sizeof(float), kHeight,
                     cudaMemcpyHostToDevice));
  float* fetched = zeros<float>(count);
  std::uint32_t* mixed = zeros<std::uint32_t>(count);
  const int grid = (count + 255) / 256;

  // Unnormalised coordinates from well outside on one side to outside on the other; linear at quarters of a texel.
  const struct {
    const char* name;
    cudaTextureFilterMode filter;
    cudaTextureAddressMode address;
    bool normalized;
    float from, step;
  } cases[] = {{"point clamp", cudaFilterModePoint, cudaAddressModeClamp, false, -19.5f, 1.0f},
               {"point border", cudaFilterModePoint, cudaAddressModeBorder, false, -19.5f, 1.0f},
               {"linear clamp", cudaFilterModeLinear, cudaAddressModeClamp, false, -1.5f, 0.25f},
               {"linear border", cudaFilterModeLinear, cudaAddressModeBorder, false, -1.5f, 0.25f},
               {"point wrap", cudaFilterModePoint, cudaAddressModeWrap, true, -1.9921875f, 0.015625f},
               {"point mirror", cudaFilterModePoint, cudaAddressModeMirror, true, -1.9921875f, 0.015625f}};
  for (const auto& c : cases) {
    const cudaTextureObject_t texture = pitched(texture_description(c.filter, c.address, c.normalized));
    for (int round = 0; round < rounds; ++round) {
      fetch<<<grid, 256>>>(texture, c.from, c.step, c.step, 200, count, work_steps(), fetched, mixed);
    }
    CHECK(cudaGetLastError());
    print_device_hash(c.name, mixed, count);
    print_device_hash("  fetched", fetched, count);
    if (!c.normalized && c.filter == cudaFilterModePoint) {
      std::vector<float> expected(count);
      for (int i = 0; i < count; ++i) {
        const int x = i % 200 - 20, y = i / 200 % 200 - 20;
        const auto inside = [](int at, int size) { return at < 0 ? 0 : at >= size ? size - 1 : at; };
        const bool outside = x < 0 || x >= kWidth || y < 0 || y >= kHeight;
        expected[i] = values[inside(y, kHeight) * kWidth + inside(x, kWidth)];
        if (c.address == cudaAddressModeBorder && outside) expected[i] = 0;
      }
      must_equal(c.name, on_host(fetched, count).data(), expected.data(), count);
    }
    CHECK(cudaDestroyTextureObject(texture));
  }
}
