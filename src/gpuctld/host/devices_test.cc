#include "gpuctld/host/devices.h"

#include <gtest/gtest.h>

namespace gpuctl::daemon {
namespace {

std::string refused(Result<std::vector<Gpu>> found, bool software) {
  const auto devices = usable_devices(std::move(found), software);
  return devices ? "" : devices.error().message;
}

TEST(UsableDevices, TheSoftwareGpuIsUsedOnRequestAlone) {
  const std::vector<Gpu> hardware{{.name = "H200"}}, software{{.name = "soft", .software = true}};
  EXPECT_EQ(usable_devices(hardware, false).value().size(), 1u);
  EXPECT_EQ(usable_devices(software, true).value().size(), 1u);
  EXPECT_EQ(refused(software, false), "the driver is the software GPU's, which is used with --software-gpu alone");
  EXPECT_EQ(refused(hardware, true), "the library of the software GPU is another driver");
}

TEST(UsableDevices, NothingFoundIsAReason) {
  EXPECT_EQ(refused(std::vector<Gpu>(), false), "the driver reports no device");
  EXPECT_EQ(refused(std::vector<Gpu>(), true), "the software GPU has no device");
  EXPECT_EQ(refused(fail("broken"), false), "broken");
}

TEST(SameUuid, PrefixDashesAndCaseDoNotCount) {
  EXPECT_TRUE(same_uuid("GPU-F1f2-00", "f1f200"));
  EXPECT_FALSE(same_uuid("GPU-f1f200", "GPU-f1f201"));
}

}  // namespace
}  // namespace gpuctl::daemon
