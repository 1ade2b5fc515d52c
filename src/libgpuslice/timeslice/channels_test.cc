#include "libgpuslice/timeslice/channels.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

namespace gpuslice {
namespace {

using gpuctl::ipc::kDriversTimeSlice;
using gpuctl::ipc::TimeSlice;

constexpr int kControl = 7, kOther = 8;
constexpr std::uint32_t kClient = 0xc1d00001, kDevice = 0x5c000003;

/// The kernel module, as far as these tests need it.
struct Module {
  std::map<std::uint32_t, std::uint64_t> time_slices;  ///< by object
  std::uint32_t refusal = 0;                           ///< status of every attempt to set something
  std::vector<std::uint32_t> commands;
  bool control_closed = false;
};
Module g_module;

int fake_ioctl(int fd, unsigned long request, void* argument) {
  if (fd != kControl || request != kRmControl) {
    ADD_FAILURE() << "request " << request << " on " << fd;
    return -1;
  }
  std::uint32_t words[8];
  std::memcpy(words, argument, sizeof words);
  std::uint64_t* us;
  std::memcpy(&us, words + 4, sizeof us);
  g_module.commands.push_back(words[2]);
  const auto known = g_module.time_slices.find(words[1]);
  if (known == g_module.time_slices.end())
    words[7] = 0x33;
  else if (words[2] == kGetTimeSlice)
    *us = known->second;
  else if (g_module.refusal != 0)
    words[7] = g_module.refusal;
  else
    known->second = *us;
  std::memcpy(argument, words, sizeof words);
  return 0;
}

bool fake_is_control(int fd) {
  return fd == kControl && !g_module.control_closed;
}

class Channels : public testing::Test {
 protected:
  Channels() { g_module = {}; }

  void make(std::uint32_t object, std::uint32_t object_class = kChannelGroupClass, int fd = kControl) {
    const std::uint32_t words[8] = {kClient, kDevice, object, object_class, 0, 0, 0, 0};
    groups.saw(fd, kRmAlloc, words);
    if (object_class == kChannelGroupClass) g_module.time_slices[object] = 2048;
  }
  void free(std::uint32_t object, std::uint32_t client = kClient) {
    const std::uint32_t words[4] = {client, kDevice, object, 0};
    groups.saw(kControl, kRmFree, words);
    g_module.time_slices.erase(object);
  }

  ChannelGroups groups{fake_ioctl, fake_is_control};
};

TEST_F(Channels, GetTheTimeSliceAndTheirOwnOneBack) {
  make(1);
  make(2);
  const TimeSliceResult set = groups.want(0, 50);
  EXPECT_EQ(set.state, TimeSlice::in_force);
  EXPECT_EQ(set.us, 50u);
  EXPECT_EQ(set.groups, 2u);
  EXPECT_EQ(g_module.time_slices, (std::map<std::uint32_t, std::uint64_t>{{1, 50}, {2, 50}}));
  EXPECT_EQ(groups.want(0, kDriversTimeSlice).us, 2048u);
  EXPECT_EQ(g_module.time_slices, (std::map<std::uint32_t, std::uint64_t>{{1, 2048}, {2, 2048}}));
  groups.want(0, 1);
  EXPECT_EQ(groups.want(0, 0).state, TimeSlice::not_tried);
  EXPECT_EQ(g_module.time_slices, (std::map<std::uint32_t, std::uint64_t>{{1, 2048}, {2, 2048}}));
}

TEST_F(Channels, NothingIsAskedWithoutNeed) {
  make(1);
  groups.want(0, 0);
  EXPECT_TRUE(g_module.commands.empty());
  groups.want(0, 50);
  EXPECT_EQ(g_module.commands, (std::vector<std::uint32_t>{kGetTimeSlice, kSetTimeSlice}));
  groups.want(0, 50);
  EXPECT_EQ(g_module.commands.size(), 2u);
  make(2);
  EXPECT_EQ(groups.made(), 2u);
  groups.want(0, 50);
  EXPECT_EQ(g_module.commands.size(), 4u);
}

TEST_F(Channels, WhatTheDriverMadeIsAskedForAndNotWritten) {
  make(1);
  EXPECT_EQ(groups.want(0, kDriversTimeSlice).state, TimeSlice::in_force);
  EXPECT_EQ(g_module.commands, (std::vector<std::uint32_t>{kGetTimeSlice}));
  EXPECT_EQ(g_module.time_slices[1], 2048u);
}

TEST_F(Channels, OnlyGroupsOnTheControlDeviceCount) {
  make(1, 0xc86f);
  make(2, kChannelGroupClass, kOther);
  EXPECT_EQ(groups.made(), 0u);
  EXPECT_EQ(groups.want(0, 50).state, TimeSlice::no_groups);
  EXPECT_TRUE(g_module.commands.empty());
}

TEST_F(Channels, ARefusalIsSaidOnceAndNotAskedForAgain) {
  make(1);
  g_module.refusal = 0x1b;
  const TimeSliceResult set = groups.want(0, 50);
  EXPECT_EQ(set.state, TimeSlice::refused);
  EXPECT_EQ(set.status, 0x1bu);
  EXPECT_EQ(set.groups, 1u);
  const std::size_t asked = g_module.commands.size();
  EXPECT_EQ(groups.want(0, 50).state, TimeSlice::refused);
  EXPECT_EQ(groups.want(0, 0).state, TimeSlice::not_tried);
  EXPECT_EQ(g_module.commands.size(), asked);
  g_module.refusal = 0;
  EXPECT_EQ(groups.want(0, 60).state, TimeSlice::in_force);
  EXPECT_EQ(g_module.time_slices[1], 60u);
}

TEST_F(Channels, WhatIsFreedIsForgotten) {
  make(1);
  make(2);
  make(3);
  free(2);
  EXPECT_EQ(groups.want(0, 50).groups, 2u);
  free(3, kClient + 1);  // an object of another client with that number
  g_module.time_slices[3] = 2048;
  EXPECT_EQ(groups.want(0, 60).groups, 2u);
  free(kDevice);  // and everything below it
  EXPECT_EQ(groups.want(0, 50).state, TimeSlice::no_groups);
  make(4);
  free(kClient);
  EXPECT_EQ(groups.want(0, 60).state, TimeSlice::no_groups);
}

TEST_F(Channels, AGroupThatTheModuleDoesNotKnowIsForgotten) {
  make(1);
  make(2);
  g_module.time_slices.erase(1);
  const TimeSliceResult set = groups.want(0, 50);
  EXPECT_EQ(set.state, TimeSlice::in_force);
  EXPECT_EQ(set.groups, 1u);
}

TEST_F(Channels, ADescriptorThatIsAnotherFileNowIsNotTouched) {
  make(1);
  g_module.control_closed = true;
  EXPECT_EQ(groups.want(0, 50).state, TimeSlice::no_groups);
  EXPECT_TRUE(g_module.commands.empty());
}

TEST_F(Channels, TheShortestOfAllDevicesHolds) {
  make(1);
  groups.want(0, kDriversTimeSlice);
  EXPECT_EQ(groups.want(3, 50).us, 50u);
  EXPECT_EQ(groups.want(0, kDriversTimeSlice).us, 50u);
  EXPECT_EQ(groups.want(3, 0).us, 2048u);
}

TEST_F(Channels, MoreThanThereIsRoomForKeepWhatTheyHave) {
  for (std::uint32_t object = 1; object <= 600; ++object) make(object);
  EXPECT_EQ(groups.want(0, 50).groups, 512u);
  EXPECT_EQ(g_module.time_slices[512], 50u);
  EXPECT_EQ(g_module.time_slices[513], 2048u);
}

TEST_F(Channels, AChildHasNone) {
  make(1);
  groups.want(0, 50);
  groups.forget_after_fork();
  EXPECT_EQ(groups.want(0, 60).state, TimeSlice::no_groups);
  EXPECT_EQ(g_module.time_slices[1], 50u);
}

TEST_F(Channels, GroupsComeAndGoInOtherThreads) {
  for (std::uint32_t object = 1; object <= 100; ++object) g_module.time_slices[object] = 2048;
  std::atomic<bool> stop{false};
  std::thread maker([&] {
    while (!stop) {
      for (std::uint32_t object = 1; object <= 100; ++object) {
        const std::uint32_t words[8] = {kClient, kDevice, object, kChannelGroupClass, 0, 0, 0, 0};
        groups.saw(kControl, kRmAlloc, words);
      }
      const std::uint32_t words[4] = {kClient, kDevice, kDevice, 0};
      groups.saw(kControl, kRmFree, words);
    }
  });
  for (std::uint32_t us = 1; groups.made() < 20000; us = us % 1000 + 1) EXPECT_LE(groups.want(0, us).groups, 100u);
  stop = true;
  maker.join();
  EXPECT_EQ(groups.want(0, 50).state, TimeSlice::no_groups);
}

}  // namespace
}  // namespace gpuslice
