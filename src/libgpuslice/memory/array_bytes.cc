#include "libgpuslice/memory/array_bytes.h"

#include <algorithm>

namespace gpuslice {

namespace {

std::uint64_t channel_bytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 0;
  }
}

}  // namespace

std::uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR& array, unsigned levels) {
  if (array.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) return 0;
  const bool layers = array.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);  // every level has all of them
  std::uint64_t elements = 0;
  for (unsigned level = 0; level < std::min(levels, 64u); ++level) {
    const auto at = [level](std::size_t size) { return std::max<std::uint64_t>(std::uint64_t{size} >> level, 1); };
    elements +=
        at(array.Width) * at(array.Height) * (layers ? std::max<std::uint64_t>(array.Depth, 1) : at(array.Depth));
  }
  return elements * array.NumChannels * channel_bytes(array.Format);
}

std::uint64_t array_bytes(const CUDA_ARRAY_DESCRIPTOR& array) {
  CUDA_ARRAY3D_DESCRIPTOR whole{};
  whole.Width = array.Width;
  whole.Height = array.Height;
  whole.Format = array.Format;
  whole.NumChannels = array.NumChannels;
  return array_bytes(whole);
}

}  // namespace gpuslice
