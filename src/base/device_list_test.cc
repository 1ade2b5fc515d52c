#include "base/device_list.h"

#include <gtest/gtest.h>

namespace gpuctl {
namespace {

using Names = std::vector<std::string>;

TEST(DeviceList, NamesEachGpuOnce) {
  EXPECT_EQ(parse_devices("all"), Names());
  EXPECT_EQ(parse_devices("0,GPU-1b2c"), (Names{"0", "GPU-1b2c"}));
  for (const char* bad : {"", "0,", "0,0", "01", "-1", "GPU-", "GPU-xyz", "all,0", "0 ,1", "MIG-1", "none"})
    EXPECT_FALSE(parse_devices(bad)) << bad;
  for (const char* text : {"all", "0,GPU-1b2c"}) EXPECT_EQ(devices_text(*parse_devices(text)), text);
}

}  // namespace
}  // namespace gpuctl
