// compat: surfaces of one, two and three dimensions and layered ones, read and written by kernels
#include "textures.h"

constexpr int kSide = 64, kLayers = 8;

__global__ void change_1d(cudaSurfaceObject_t surface, int steps) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  std::uint32_t value = 0;
  surf1Dread(&value, surface, x * 4);
  surf1Dwrite(mix(value + x, steps), surface, x * 4);
}

__global__ void change_2d(cudaSurfaceObject_t surface, int steps) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  std::uint32_t value = 0;
  surf2Dread(&value, surface, x * 4, y);
  surf2Dwrite(mix(value + x * 7 + y, steps), surface, x * 4, y);
}

__global__ void change_3d(cudaSurfaceObject_t surface, int steps) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
  std::uint32_t value = 0, outside = 1;
  surf3Dread(&value, surface, x * 4, y, z);
  surf3Dread(&outside, surface, (x + kSide) * 4, y, z, cudaBoundaryModeZero);
  surf3Dwrite(mix(value + outside + x * 7 + y * 3 + z, steps), surface, x * 4, y, z);
}

__global__ void change_layers(cudaSurfaceObject_t surface, int steps) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, layer = blockIdx.z;
  std::uint32_t value = 0;
  surf2DLayeredread(&value, surface, x * 4, y, layer);
  surf2DLayeredwrite(mix(value + x * 5 + y * 3 + layer, steps), surface, x * 4, y, layer);
}

std::vector<std::uint32_t> contents(cudaArray_t array, int width, int height, int depth) {
  std::vector<std::uint32_t> values(static_cast<std::size_t>(width) * height * depth);
  cudaMemcpy3DParms copy{};
  copy.srcArray = array;
  copy.dstPtr = make_cudaPitchedPtr(values.data(), width * 4, width, height);
  copy.extent = make_cudaExtent(width, height, depth);
  copy.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy3D(&copy));
  return values;
}

int main() {
  const int steps = work_steps(), rounds = work_rounds();
  const std::vector<std::uint32_t> none(kSide * kSide * kSide, 0);
  const cudaExtent line = make_cudaExtent(kSide, 1, 1), plane = make_cudaExtent(kSide, kSide, 1);
  const cudaExtent cube = make_cudaExtent(kSide, kSide, kSide), layers = make_cudaExtent(kSide, kSide, kLayers);
  const cudaArray_t arrays[] = {array_of(none, make_cudaExtent(kSide, 0, 0), line, cudaArraySurfaceLoadStore),
                                array_of(none, make_cudaExtent(kSide, kSide, 0), plane, cudaArraySurfaceLoadStore),
                                array_of(none, cube, cube, cudaArraySurfaceLoadStore),
                                array_of(none, layers, layers, cudaArrayLayered | cudaArraySurfaceLoadStore)};
  std::vector<cudaSurfaceObject_t> surfaces;
  for (cudaArray_t array : arrays) surfaces.push_back(surface_of(array));
  for (int round = 0; round < rounds; ++round) {
    change_1d<<<1, kSide>>>(surfaces[0], steps);
    change_2d<<<dim3(2, kSide), kSide / 2>>>(surfaces[1], steps);
    change_3d<<<dim3(1, kSide, kSide), kSide>>>(surfaces[2], steps);
    change_layers<<<dim3(2, kSide, kLayers), kSide / 2>>>(surfaces[3], steps);
  }
  CHECK(cudaGetLastError());
  const std::vector<std::uint32_t> first = contents(arrays[0], kSide, 1, 1);
  for (int x = 0; x < kSide; ++x) {
    std::uint32_t value = 0;
    for (int round = 0; round < rounds; ++round) value = mix(value + x, steps);
    must(first[x] == value, "1-D surface");
  }
  print_hash("1-D", first.data(), first.size() * 4);
  const char* names[] = {"2-D", "3-D", "layered"};
  const int depths[] = {1, kSide, kLayers};
  for (int i = 0; i < 3; ++i) {
    const std::vector<std::uint32_t> values = contents(arrays[i + 1], kSide, kSide, depths[i]);
    print_hash(names[i], values.data(), values.size() * 4);
  }
  for (cudaSurfaceObject_t surface : surfaces) CHECK(cudaDestroySurfaceObject(surface));
  for (cudaArray_t array : arrays) CHECK(cudaFreeArray(array));
}
