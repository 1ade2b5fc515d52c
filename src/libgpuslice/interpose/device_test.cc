// The answers that a program gets from a driver that has each of the functions. The software GPU lacks some.
#include <gtest/gtest.h>

#include <vector>

#include "libgpuslice/base/driver.h"
#include "libgpuslice/client/held_memory.h"
#include "libgpuslice/client/told_sms.h"
#include "libgpuslice/interpose/hooks.h"

namespace gpuslice {

namespace {

constexpr int kSms = 132, kPerSm = 4, kClusters = 16;
constexpr std::size_t kBytes = 80u << 20;
constexpr CUdevice kOther = 1;  ///< a device without limits

/// What the driver answers, and what the slice's stub page says.
struct World {
  CUdevice current = 0;
  CUresult result = CUDA_SUCCESS;     ///< of every call except the next
  CUresult attribute = CUDA_SUCCESS;  ///< of cuDeviceGetAttribute
  std::uint32_t sure = 40;
  std::size_t memory_max = 8u << 20;
  unsigned affinity = kSms;
} world;

Driver fake_driver() {
  Driver fake;
  fake.cuCtxGetDevice = [](CUdevice* device) {
    *device = world.current;
    return CUDA_SUCCESS;
  };
  fake.cuDeviceGetAttribute = [](int* value, CUdevice_attribute which, CUdevice) {
    *value = which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? kSms : 7;
    return world.attribute;
  };
  fake.cuDeviceTotalMem_v2 = [](std::size_t* bytes, CUdevice) {
    *bytes = kBytes;
    return world.result;
  };
  fake.cuOccupancyMaxPotentialBlockSize = [](int* grid, int* block, CUfunction, CUoccupancyB2DSize, std::size_t, int) {
    *grid = kPerSm * kSms;
    *block = 256;
    return world.result;
  };
  fake.cuOccupancyMaxPotentialBlockSizeWithFlags = [](int* grid, int* block, CUfunction, CUoccupancyB2DSize,
                                                      std::size_t, int, unsigned) {
    *grid = kPerSm * kSms;
    *block = 256;
    return world.result;
  };
  fake.cuOccupancyMaxActiveClusters = [](int* clusters, CUfunction, const CUlaunchConfig*) {
    *clusters = kClusters;
    return world.result;
  };
  fake.cuCtxGetExecAffinity = [](CUexecAffinityParam* affinity, CUexecAffinityType type) {
    affinity->type = type;
    affinity->param.smCount.val = world.affinity;
    return world.result;
  };
  return fake;
}

}  // namespace

const Driver& driver() {
  static const Driver table = fake_driver();
  return table;
}

ToldSms& ToldSms::get() {
  static ToldSms told;
  return told;
}

std::uint32_t ToldSms::tell(CUdevice device, std::uint32_t real) {
  return devices_[device].tell(device == kOther ? 0 : world.sure, real);
}

HeldMemory& HeldMemory::get() {
  static HeldMemory held;
  return held;
}

void HeldMemory::limit(CUdevice device, std::size_t* free, std::size_t* total) {
  EXPECT_EQ(free, nullptr);
  if (device != kOther) *total = std::min(*total, world.memory_max);
}

namespace {

class DeviceAnswers : public testing::Test {
 protected:
  void SetUp() override {
    world = {};
    new (&ToldSms::get()) ToldSms;
  }
  static int attribute(CUdevice_attribute which, CUdevice device = 0) {
    int value = 0;
    EXPECT_EQ(cuDeviceGetAttribute(&value, which, device), world.attribute);
    return value;
  }
  static int sms(CUdevice device = 0) { return attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device); }
  static std::vector<int> grids() {
    int grid = 0, with_flags = 0, block = 0;
    EXPECT_EQ(cuOccupancyMaxPotentialBlockSize(&grid, &block, nullptr, nullptr, 0, 0), world.result);
    EXPECT_EQ(cuOccupancyMaxPotentialBlockSizeWithFlags(&with_flags, &block, nullptr, nullptr, 0, 0, 0), world.result);
    EXPECT_EQ(block, 256);
    return {grid, with_flags};
  }
  static int clusters() {
    int count = 0;
    EXPECT_EQ(cuOccupancyMaxActiveClusters(&count, nullptr, nullptr), world.result);
    return count;
  }
  static unsigned affinity() {
    CUexecAffinityParam found{};
    EXPECT_EQ(cuCtxGetExecAffinity(&found, CU_EXEC_AFFINITY_TYPE_SM_COUNT), world.result);
    return found.param.smCount.val;
  }
};

TEST_F(DeviceAnswers, AgreeWithEachOther) {
  EXPECT_EQ(sms(), 40);
  EXPECT_EQ(grids(), (std::vector<int>{kPerSm * 40, kPerSm * 40}));
  EXPECT_EQ(clusters(), 4);
  EXPECT_EQ(affinity(), 40u);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 7);
}

TEST_F(DeviceAnswers, AgreeWhicheverWasAskedFirst) {
  EXPECT_EQ(clusters(), 4);
  world.sure = 3;
  EXPECT_EQ(sms(), 40);
  EXPECT_EQ(grids(), (std::vector<int>{kPerSm * 40, kPerSm * 40}));
}

TEST_F(DeviceAnswers, AreOfTheDeviceThatIsAsked) {
  EXPECT_EQ(sms(kOther), kSms);
  world.current = kOther;
  EXPECT_EQ(grids(), (std::vector<int>{kPerSm * kSms, kPerSm * kSms}));
  EXPECT_EQ(clusters(), kClusters);
  EXPECT_EQ(affinity(), static_cast<unsigned>(kSms));
  EXPECT_EQ(sms(), 40);
}

TEST_F(DeviceAnswers, AnAffinityThatIsLessStays) {
  world.affinity = 12;
  EXPECT_EQ(affinity(), 12u);
}

TEST_F(DeviceAnswers, ErrorsAreTheDrivers) {
  world.result = world.attribute = CUDA_ERROR_UNKNOWN;
  EXPECT_EQ(sms(), kSms);  // whatever value the failed call left there
  EXPECT_EQ(grids(), (std::vector<int>{kPerSm * kSms, kPerSm * kSms}));
  EXPECT_EQ(clusters(), kClusters);
  EXPECT_EQ(affinity(), static_cast<unsigned>(kSms));
}

TEST_F(DeviceAnswers, WhereTheDriverDoesNotSayHowManySmsThereAreACountStays) {
  world.attribute = CUDA_ERROR_UNKNOWN;
  EXPECT_EQ(clusters(), kClusters);
  EXPECT_EQ(affinity(), static_cast<unsigned>(kSms));
}

TEST_F(DeviceAnswers, MemoryIsWhatMayBeHeld) {
  std::size_t bytes = 0;
  EXPECT_EQ(cuDeviceTotalMem(&bytes, 0), CUDA_SUCCESS);
  EXPECT_EQ(bytes, world.memory_max);
  EXPECT_EQ(cuDeviceTotalMem(&bytes, kOther), CUDA_SUCCESS);
  EXPECT_EQ(bytes, kBytes);
  world.result = CUDA_ERROR_INVALID_DEVICE;
  EXPECT_EQ(cuDeviceTotalMem(&bytes, 0), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(bytes, kBytes);
}

}  // namespace
}  // namespace gpuslice
