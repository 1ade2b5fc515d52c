#include "softgpu/device/visible_devices.h"

#include <gtest/gtest.h>

#include "softgpu/device/device.h"

namespace gpuctl::softgpu {
namespace {

using Numbers = std::vector<std::size_t>;

TEST(VisibleDevices, AllWithoutAList) {
  EXPECT_EQ(visible_devices(nullptr, 3), (Numbers{0, 1, 2}));
}

TEST(VisibleDevices, ByNumberInTheOrderOfTheList) {
  EXPECT_EQ(visible_devices("1", 3), Numbers{1});
  EXPECT_EQ(visible_devices("2,0", 3), (Numbers{2, 0}));
  EXPECT_EQ(visible_devices(" 2 , 1", 3), (Numbers{2, 1}));
}

TEST(VisibleDevices, ByUuidOrABeginningThatOnlyOneHas) {
  const std::string second = device_uuid_text(1);
  EXPECT_EQ(second, "GPU-67707563-746c-2d73-6f66-746770752d31");
  EXPECT_EQ(visible_devices(second.c_str(), 3), Numbers{1});
  EXPECT_EQ(visible_devices((second + ",0").c_str(), 3), (Numbers{1, 0}));
  EXPECT_EQ(visible_devices("GPU-67707563-746C-2d73-6F66-746770752d31", 3), Numbers{1});
  EXPECT_EQ(visible_devices("GPU-6770", 1), Numbers{0});
  EXPECT_EQ(visible_devices("GPU-6770", 3), Numbers{});  // not unique
}

TEST(VisibleDevices, WhatNamesNoneEndsTheList) {
  EXPECT_EQ(visible_devices("", 3), Numbers{});
  EXPECT_EQ(visible_devices("-1", 3), Numbers{});
  EXPECT_EQ(visible_devices("1,3,0", 3), Numbers{1});
  EXPECT_EQ(visible_devices("1,-1,0", 3), Numbers{1});
  EXPECT_EQ(visible_devices("1,GPU-0,0", 3), Numbers{1});
}

TEST(VisibleDevices, OneNamedTwiceLeavesNone) {
  EXPECT_EQ(visible_devices("0,1,0", 3), Numbers{});
  EXPECT_EQ(visible_devices(("1," + device_uuid_text(1)).c_str(), 3), Numbers{});
}

}  // namespace
}  // namespace gpuctl::softgpu
