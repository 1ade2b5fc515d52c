#include "gpuctl/doctor/driver_limits.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace gpuctl::cli {
namespace {

constexpr std::int64_t kMiB = 1 << 20, kMemory = 4096 * kMiB;

/// What the NVML of testing/fake_nvml.c is to say of each cgroup.
class Driver : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("FAKE_NVML_LIMITS", "GPU-1 /sys/fs/cgroup/a.service 268435456", 1); }
  void TearDown() override { ::unsetenv("FAKE_NVML_LIMITS"); }
};

TEST_F(Driver, LimitsACgroupOnOneGpu) {
  const DriverLimits limits(FAKE_NVML);
  EXPECT_EQ(limits.of("/a.service", "GPU-1", kMemory), 256 * kMiB);
  EXPECT_FALSE(limits.of("/b.service", "GPU-1", kMemory)) << "another cgroup";
  EXPECT_FALSE(limits.of("/a.service", "GPU-2", kMemory)) << "another GPU";
  EXPECT_FALSE(limits.of("/a.service", "MIG-1", kMemory)) << "a GPU that NVML does not find";
  EXPECT_FALSE(limits.of("", "GPU-1", kMemory)) << "none above it has one";
  EXPECT_EQ(limits.of("/a.service/b/c", "GPU-1", kMemory), 256 * kMiB) << "one above it has";
  ::setenv("FAKE_NVML_LIMITS", "GPU-1 /sys/fs/cgroup 268435456", 1);
  EXPECT_EQ(limits.of("", "GPU-1", kMemory), 256 * kMiB) << "that of a container, as it is seen from within";
}

TEST_F(Driver, LimitsNothingToAllThatTheGpuHas) {
  const DriverLimits limits(FAKE_NVML);
  EXPECT_FALSE(limits.of("/a.service", "GPU-1", 256 * kMiB));
  ::setenv("FAKE_NVML_LIMITS", "GPU-1 /sys/fs/cgroup/a.service 18446744073709551615", 1);
  EXPECT_FALSE(limits.of("/a.service", "GPU-1", kMemory)) << "NVML_DEVICE_MEMORY_LIMIT_MAX";
}

TEST_F(Driver, HasNoLimitsWhereNvmlIsOlderOrMissing) {
  EXPECT_TRUE(DriverLimits::can(FAKE_NVML));
  EXPECT_FALSE(DriverLimits::can("libc.so.6"));
  EXPECT_FALSE(DriverLimits::can("/nowhere/libnvidia-ml.so.1"));
  EXPECT_FALSE(DriverLimits("libc.so.6").of("/a.service", "GPU-1", kMemory));
  EXPECT_FALSE(DriverLimits("/nowhere/libnvidia-ml.so.1").of("/a.service", "GPU-1", kMemory));
}

}  // namespace
}  // namespace gpuctl::cli
