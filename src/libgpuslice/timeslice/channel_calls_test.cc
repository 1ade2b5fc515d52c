#include "libgpuslice/timeslice/channel_calls.h"

#include <gtest/gtest.h>
#include <sys/ioctl.h>

#include <cstring>
#include <vector>

namespace gpuslice {
namespace {

struct Words {
  explicit Words(std::vector<std::uint32_t> list) : words(std::move(list)) {}
  const void* data() const { return words.data(); }
  std::vector<std::uint32_t> words;
};

/// Client 0xc1d00001, parent 0x5c000003, object 0x5c000013.
Words alloc(std::uint32_t object_class, std::uint32_t status = 0) {
  return Words({0xc1d00001, 0x5c000003, 0x5c000013, object_class, 0xdead, 0x7fff, 32, status});
}
Words alloc_with_rights(std::uint32_t object_class, std::uint32_t status = 0) {
  return Words({0xc1d00001, 0x5c000003, 0x5c000013, object_class, 0xdead, 0x7fff, 0, 0, 32, 1, status, 0});
}

TEST(ChannelCalls, RequestsAreReadWriteCallsOfTheirSizes) {
  EXPECT_EQ(kRmFree, _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x29, 16));
  EXPECT_EQ(kRmControl, _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2a, 32));
  EXPECT_EQ(kRmAlloc, _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2b, 32));
  EXPECT_EQ(kRmAllocWithRights, _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2b, 48));
  EXPECT_TRUE(concerns_channels(kRmFree) && concerns_channels(kRmAlloc) && concerns_channels(kRmAllocWithRights));
  for (const unsigned long other :
       {std::uint64_t{kRmControl}, std::uint64_t{TIOCGWINSZ}, std::uint64_t{FIONREAD}, std::uint64_t{0x462b}})
    EXPECT_FALSE(concerns_channels(static_cast<std::uint32_t>(other))) << other;
}

TEST(ChannelCalls, AChannelGroupIsSeenByItsClass) {
  const RmObject expected{0xc1d00001, 0x5c000003, 0x5c000013};
  EXPECT_EQ(made_channel_group(kRmAlloc, alloc(kChannelGroupClass).data()), expected);
  EXPECT_EQ(made_channel_group(kRmAllocWithRights, alloc_with_rights(kChannelGroupClass).data()), expected);
  EXPECT_FALSE(made_channel_group(kRmAlloc, alloc(0xc86f).data()));
  EXPECT_FALSE(made_channel_group(kRmAllocWithRights, alloc_with_rights(0x0080).data()));
}

TEST(ChannelCalls, OneThatWasRefusedIsNot) {
  EXPECT_FALSE(made_channel_group(kRmAlloc, alloc(kChannelGroupClass, 0x1f).data()));
  EXPECT_FALSE(made_channel_group(kRmAllocWithRights, alloc_with_rights(kChannelGroupClass, 0x51).data()));
  EXPECT_FALSE(made_channel_group(kRmFree, alloc(kChannelGroupClass).data()));
  EXPECT_FALSE(made_channel_group(kRmAlloc, nullptr));
}

TEST(ChannelCalls, WhatIsFreed) {
  const Words freed({0xc1d00001, 0x5c000003, 0x5c000013, 0});
  EXPECT_EQ(freed_object(kRmFree, freed.data()), (RmObject{0xc1d00001, 0x5c000003, 0x5c000013}));
  EXPECT_FALSE(freed_object(kRmFree, Words({0xc1d00001, 0x5c000003, 0x5c000013, 0x33}).data()));
  EXPECT_FALSE(freed_object(kRmAlloc, freed.data()));
  EXPECT_FALSE(freed_object(kRmFree, nullptr));
}

TEST(ChannelCalls, TheControlCall) {
  std::uint64_t us = 50;
  RmControl call = time_slice_call({0xc1d00001, 0x5c000003, 0x5c000013}, kSetTimeSlice, us);
  std::uint32_t words[8];
  std::memcpy(words, call.data(), sizeof words);
  const auto address = reinterpret_cast<std::uintptr_t>(&us);
  const std::vector<std::uint32_t> expected{0xc1d00001,
                                            0x5c000013,
                                            0xa06c0103,
                                            0,
                                            static_cast<std::uint32_t>(address),
                                            static_cast<std::uint32_t>(std::uint64_t{address} >> 32),
                                            8,
                                            0};
  EXPECT_EQ(std::vector<std::uint32_t>(words, words + 8), expected);
  words[7] = 0x1f;
  std::memcpy(call.data(), words, sizeof words);
  EXPECT_EQ(status_of(call), 0x1fu);
  EXPECT_FALSE(says_gone(0x1f));
  EXPECT_TRUE(says_gone(0x33));
}

}  // namespace
}  // namespace gpuslice
