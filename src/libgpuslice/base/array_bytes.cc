#include "libgpuslice/base/array_bytes.h"

#include <algorithm>

namespace gpuslice {

namespace {

/// Bits of a texel; 0: unknown, or in blocks. Numbers stand for names that older cuda.h lack (13.5).
unsigned texel_bits(CUarray_format format, unsigned channels) {
  switch (static_cast<unsigned>(format)) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
    case CU_AD_FORMAT_UNORM_INT8X1:
    case CU_AD_FORMAT_UNORM_INT8X2:
    case CU_AD_FORMAT_UNORM_INT8X4:
    case CU_AD_FORMAT_SNORM_INT8X1:
    case CU_AD_FORMAT_SNORM_INT8X2:
    case CU_AD_FORMAT_SNORM_INT8X4:
      return 8 * channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
    case CU_AD_FORMAT_UNORM_INT16X1:
    case CU_AD_FORMAT_UNORM_INT16X2:
    case CU_AD_FORMAT_UNORM_INT16X4:
    case CU_AD_FORMAT_SNORM_INT16X1:
    case CU_AD_FORMAT_SNORM_INT16X2:
    case CU_AD_FORMAT_SNORM_INT16X4:
      return 16 * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 32 * channels;
    case CU_AD_FORMAT_NV12:  // of 8 bits, 4:2:0
    case 0x53:
    case 0x59:
      return 12;
    case CU_AD_FORMAT_NV16:  // 4:2:2
    case CU_AD_FORMAT_YUY2:
    case 0x51:
    case 0x55:
    case 0x5b:
      return 16;
    case CU_AD_FORMAT_P010:  // of 16 bits, 4:2:0
    case CU_AD_FORMAT_P016:
    case 0x54:
    case 0x5a:
      return 24;
    case CU_AD_FORMAT_Y444_PLANAR8:  // of 8 bits, 4:4:4
    case CU_AD_FORMAT_YUV444_8bit_SemiPlanar:
    case 0x57:
    case 0x5d:
      return 24;
    case CU_AD_FORMAT_P210:  // of 16 bits, 4:2:2
    case CU_AD_FORMAT_P216:
    case CU_AD_FORMAT_Y210:
    case CU_AD_FORMAT_Y216:
    case 0x56:
    case 0x5c:
      return 32;
    case CU_AD_FORMAT_AYUV:  // of four channels, with 4:4:4
    case CU_AD_FORMAT_Y410:
    case CU_AD_FORMAT_UNORM_INT_101010_2:
    case 0x52:
      return 32;
    case CU_AD_FORMAT_Y444_PLANAR10:  // of 16 bits, 4:4:4
    case CU_AD_FORMAT_YUV444_16bit_SemiPlanar:
    case 0x58:
    case 0x5e:
      return 48;
    case CU_AD_FORMAT_Y416:
      return 64;
    default:
      return 0;
  }
}

/// Bytes of a block of 4 x 4 texels; 0: the format has no blocks.
unsigned block_bytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_BC1_UNORM:
    case CU_AD_FORMAT_BC1_UNORM_SRGB:
    case CU_AD_FORMAT_BC4_UNORM:
    case CU_AD_FORMAT_BC4_SNORM:
      return 8;
    case CU_AD_FORMAT_BC2_UNORM:
    case CU_AD_FORMAT_BC2_UNORM_SRGB:
    case CU_AD_FORMAT_BC3_UNORM:
    case CU_AD_FORMAT_BC3_UNORM_SRGB:
    case CU_AD_FORMAT_BC5_UNORM:
    case CU_AD_FORMAT_BC5_SNORM:
    case CU_AD_FORMAT_BC6H_UF16:
    case CU_AD_FORMAT_BC6H_SF16:
    case CU_AD_FORMAT_BC7_UNORM:
    case CU_AD_FORMAT_BC7_UNORM_SRGB:
      return 16;
    default:
      return 0;
  }
}

}  // namespace

std::uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR& array, unsigned levels) {
  if (array.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) return 0;
  const bool layers = array.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);  // every level has all of them
  const unsigned block = block_bytes(array.Format);
  const std::uint64_t side = block != 0 ? 4 : 1;
  std::uint64_t units = 0;  // texels, or blocks
  for (unsigned level = 0; level < std::min(levels, 64u); ++level) {
    const auto at = [level](std::size_t size) { return std::max<std::uint64_t>(std::uint64_t{size} >> level, 1); };
    const auto along = [&](std::size_t size) { return (at(size) + side - 1) / side; };
    units +=
        along(array.Width) * along(array.Height) * (layers ? std::max<std::uint64_t>(array.Depth, 1) : at(array.Depth));
  }
  return block != 0 ? units * block : units * texel_bits(array.Format, array.NumChannels) / 8;
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
