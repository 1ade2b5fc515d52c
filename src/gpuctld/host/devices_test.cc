#include "gpuctld/host/devices.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace gpuctl::daemon {
namespace {

Result<std::vector<Gpu>> probe(const char* behaviour) {
  ::setenv("FAKE_DRIVER", behaviour, 1);
  return probe_devices(GPUCTL_FAKE_DRIVER, false, std::chrono::milliseconds(2000));
}

TEST(ProbeDevices, ReadsWhatTheDriverSays) {
  const auto devices = probe("");
  ASSERT_TRUE(devices) << devices.error().message;
  ASSERT_EQ(devices->size(), 3u);
  const Gpu& gpu = (*devices)[1];
  EXPECT_EQ(gpu.index, 1);
  EXPECT_EQ(gpu.sms, 131u);
  EXPECT_EQ(gpu.memory_bytes, std::uint64_t{141} << 30);
  EXPECT_EQ(gpu.uuid, "GPU-f1f2f3f4-f5f6-f7f8-f9fa-fbfcfdfeff00");
  EXPECT_EQ(gpu.name, "Fake \"GPU\" \xEF\xBF\xBD");
  EXPECT_FALSE(gpu.software);
}

TEST(ProbeDevices, ADriverWithoutDevicesIsAnEmptyList) {
  EXPECT_TRUE(probe("none").value().empty());
}

TEST(ProbeDevices, FailuresNameTheLibrary) {
  for (const char* behaviour : {"fail", "crash", "hang"}) {
    const auto devices = probe(behaviour);
    ASSERT_FALSE(devices) << behaviour;
    EXPECT_EQ(devices.error().message.find(GPUCTL_FAKE_DRIVER), 0u);
  }
  EXPECT_EQ(probe_devices("/nowhere/libcuda.so.1", false).error().message,
            "/nowhere/libcuda.so.1: cannot open shared object file: No such file or directory");
  EXPECT_FALSE(probe_devices("libm.so.6", false));
}

TEST(SameUuid, PrefixDashesAndCaseDoNotCount) {
  EXPECT_TRUE(same_uuid("GPU-F1f2-00", "f1f200"));
  EXPECT_FALSE(same_uuid("GPU-f1f200", "GPU-f1f201"));
}

}  // namespace
}  // namespace gpuctl::daemon
