// What the programs with textures share.
#pragma once

#include "work.h"

/// A texture description with unnormalised coordinates; `filter` and `address` for all dimensions.
inline cudaTextureDesc texture_description(cudaTextureFilterMode filter = cudaFilterModePoint,
                                           cudaTextureAddressMode address = cudaAddressModeClamp,
                                           bool normalized = false) {
  cudaTextureDesc description{};
  for (auto& mode : description.addressMode) mode = address;
  description.filterMode = filter;
  description.readMode = cudaReadModeElementType;
  description.normalizedCoords = normalized ? 1 : 0;
  return description;
}

/// A texture over a CUDA array.
inline cudaTextureObject_t texture_of(cudaArray_t array, const cudaTextureDesc& description) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureObject_t texture = 0;
  CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  return texture;
}

/// A surface over a CUDA array.
inline cudaSurfaceObject_t surface_of(cudaArray_t array) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t surface = 0;
  CHECK(cudaCreateSurfaceObject(&surface, &resource));
  return surface;
}

/// A CUDA array of any shape that holds `values`. `copied` is the extent in elements that is copied.
template <class T>
cudaArray_t array_of(const std::vector<T>& values, cudaExtent extent, cudaExtent copied, unsigned flags) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
  cudaArray_t array = nullptr;
  CHECK(cudaMalloc3DArray(&array, &format, extent, flags));
  cudaMemcpy3DParms copy{};
  copy.srcPtr =
      make_cudaPitchedPtr(const_cast<T*>(values.data()), copied.width * sizeof(T), copied.width, copied.height);
  copy.dstArray = array;
  copy.extent = copied;
  copy.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&copy));
  return array;
}

/// Numbers that floats hold exactly, even when they are weighted by quarters.
inline std::vector<float> small_numbers(std::size_t count, std::uint32_t seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(mix(seed + static_cast<unsigned>(i), 2) >> 22);
  return values;
}

/// What each thread fetched is kept, and mixed into what it had.
__device__ inline void keep(float value, int i, int steps, float* fetched, std::uint32_t* mixed) {
  fetched[i] = value;
  mixed[i] = mix(mixed[i] ^ __float_as_uint(value), steps);
}
