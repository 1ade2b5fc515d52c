#include "libgpuslice/base/array_bytes.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

CUDA_ARRAY3D_DESCRIPTOR array(std::size_t width, std::size_t height, std::size_t depth, unsigned flags = 0) {
  CUDA_ARRAY3D_DESCRIPTOR made{};
  made.Width = width;
  made.Height = height;
  made.Depth = depth;
  made.Format = CU_AD_FORMAT_FLOAT;
  made.NumChannels = 4;
  made.Flags = flags;
  return made;
}

TEST(ArrayBytes, SizesThatAreNotGivenAreOne) {
  EXPECT_EQ(array_bytes(array(100, 0, 0)), 1600u);
  EXPECT_EQ(array_bytes(array(100, 10, 0)), 16000u);
  EXPECT_EQ(array_bytes(array(100, 10, 3)), 48000u);
  CUDA_ARRAY_DESCRIPTOR flat{};
  flat.Width = 100;
  flat.Height = 10;
  flat.Format = CU_AD_FORMAT_HALF;
  flat.NumChannels = 2;
  EXPECT_EQ(array_bytes(flat), 4000u);
  flat.Format = CU_AD_FORMAT_UNSIGNED_INT8;
  EXPECT_EQ(array_bytes(flat), 2000u);
}

TEST(ArrayBytes, LevelsHalve) {
  EXPECT_EQ(array_bytes(array(8, 4, 2), 3), 16u * (64 + 8 + 2));
  EXPECT_EQ(array_bytes(array(8, 4, 6, CUDA_ARRAY3D_LAYERED), 2), 16u * (192 + 48));
}

TEST(ArrayBytes, WithoutMemoryOfItsOwnThereIsNone) {
  EXPECT_EQ(array_bytes(array(100, 10, 0, CUDA_ARRAY3D_SPARSE)), 0u);
  EXPECT_EQ(array_bytes(array(100, 10, 0, CUDA_ARRAY3D_DEFERRED_MAPPING)), 0u);
}

TEST(ArrayBytes, EachFormat) {
  CUDA_ARRAY3D_DESCRIPTOR other = array(100, 10, 2);
  const auto bytes = [&other](CUarray_format format, unsigned channels, unsigned levels = 1) {
    other.Format = format;
    other.NumChannels = channels;
    return array_bytes(other, levels);
  };
  EXPECT_EQ(bytes(CU_AD_FORMAT_UNORM_INT8X4, 4), 8000u);
  EXPECT_EQ(bytes(CU_AD_FORMAT_SNORM_INT16X2, 2), 8000u);
  EXPECT_EQ(bytes(CU_AD_FORMAT_UNORM_INT_101010_2, 4), 8000u);
  EXPECT_EQ(bytes(CU_AD_FORMAT_NV12, 3), 3000u);
  EXPECT_EQ(bytes(CU_AD_FORMAT_P016, 3), 6000u);
  EXPECT_EQ(bytes(CU_AD_FORMAT_Y416, 4), 16000u);
  EXPECT_EQ(bytes(CU_AD_FORMAT_BC1_UNORM, 4), 2u * 25 * 3 * 8) << "blocks of four by four texels";
  EXPECT_EQ(bytes(CU_AD_FORMAT_BC7_UNORM, 4, 2), 2u * 25 * 3 * 16 + 13u * 2 * 16);
  EXPECT_EQ(bytes(static_cast<CUarray_format>(0x5e), 3), 12000u) << "one of CUDA 13.5";
  EXPECT_EQ(bytes(static_cast<CUarray_format>(0x7f), 4), 0u) << "an unknown one";
}

}  // namespace
}  // namespace gpuslice
