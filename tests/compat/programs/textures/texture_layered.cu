// compat: layered textures of one and two dimensions
#include "textures.h"

constexpr int kWidth = 24, kHeight = 16, kLayers = 10;

__global__ void fetch(cudaTextureObject_t lines, cudaTextureObject_t images, int count, int steps, float* from_lines,
                      float* from_images, std::uint32_t* mixed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int x = i % kWidth, y = i / kWidth % kHeight, layer = i / (kWidth * kHeight) % kLayers;
  keep(tex1DLayered<float>(lines, x + 0.5f, layer), i, steps, from_lines, mixed);
  keep(tex2DLayered<float>(images, x + 0.5f, y + 0.5f, layer), i, steps, from_images, mixed);
}

int main() {
  const int count = work_threads();
  const std::vector<float> lines = small_numbers(kWidth * kLayers, 4);
  const std::vector<float> images = small_numbers(kWidth * kHeight * kLayers, 5);
  const cudaArray_t line_array =
      array_of(lines, make_cudaExtent(kWidth, 0, kLayers), make_cudaExtent(kWidth, 1, kLayers), cudaArrayLayered);
  const cudaArray_t image_array = array_of(images, make_cudaExtent(kWidth, kHeight, kLayers),
                                           make_cudaExtent(kWidth, kHeight, kLayers), cudaArrayLayered);
  const cudaTextureObject_t line_texture = texture_of(line_array, texture_description());
  const cudaTextureObject_t image_texture = texture_of(image_array, texture_description());
  float *from_lines = zeros<float>(count), *from_images = zeros<float>(count);
  std::uint32_t* mixed = zeros<std::uint32_t>(count);
  for (int round = 0; round < work_rounds(); ++round) {
    fetch<<<(count + 127) / 128, 128>>>(line_texture, image_texture, count, work_steps(), from_lines, from_images,
                                        mixed);
  }
  CHECK(cudaGetLastError());
  std::vector<float> expected_lines(count), expected_images(count);
  for (int i = 0; i < count; ++i) {
    const int x = i % kWidth, y = i / kWidth % kHeight, layer = i / (kWidth * kHeight) % kLayers;
    expected_lines[i] = lines[layer * kWidth + x];
    expected_images[i] = images[(layer * kHeight + y) * kWidth + x];
  }
  must_equal("1-D", on_host(from_lines, count).data(), expected_lines.data(), count);
  must_equal("2-D", on_host(from_images, count).data(), expected_images.data(), count);
  print_device_hash("layered", mixed, count);
}
