#include "libgpuslice/base/sm_groups.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

namespace gpuslice {
namespace {

TEST(SmGroups, EightSmsOrAnEighthOfASmallDeviceInPairs) {
  EXPECT_EQ(group_sms(132), 8u);
  EXPECT_EQ(group_sms(64), 8u);
  EXPECT_EQ(group_sms(40), 4u);
  EXPECT_EQ(group_sms(8), 2u);
  EXPECT_EQ(group_sms(1), 2u);
}

TEST(SmGroups, OnlyWholeGroupsCountBelowTheWholeDevice) {
  EXPECT_EQ(in_whole_groups(132, 132), 132u);
  EXPECT_EQ(in_whole_groups(200, 132), 200u);
  EXPECT_EQ(in_whole_groups(131, 132), 128u);
  EXPECT_EQ(in_whole_groups(124, 132), 120u);
  EXPECT_EQ(in_whole_groups(99, 132), 96u);
  EXPECT_EQ(in_whole_groups(8, 132), 8u);
  EXPECT_EQ(in_whole_groups(5, 8), 4u);
}

/// A device of `sms` in groups of `size`: what is left over is in the last group, or a group of its own.
std::vector<std::uint32_t> divided(std::uint32_t sms, std::uint32_t size, bool in_the_last) {
  std::vector<std::uint32_t> starts;
  for (std::uint32_t at = 0; at < sms; at += size) starts.push_back(at);
  if (in_the_last && sms % size != 0 && starts.size() > 1) starts.pop_back();
  starts.push_back(sms);
  return starts;
}

std::uint32_t sms_of(std::span<const std::uint32_t> starts, GroupRun run) {
  return starts[run.end] - starts[run.begin];
}

/// The most that any choice among the grant's own groups has: with the last group and without.
std::uint32_t most_of(std::span<const std::uint32_t> starts, std::uint32_t size, std::uint32_t first,
                      std::uint32_t count) {
  std::uint32_t alike = 0, most = 0;
  for (std::size_t g = 0; g + 2 < starts.size(); ++g)
    if (starts[g + 1] - 1 >= first && starts[g + 1] - 1 < first + count) ++alike;
  const std::uint32_t last = starts.back() - starts[starts.size() - 2];
  most = std::min(alike, count / size) * size;
  if (first + count == starts.back() && last <= count)
    most = std::max(most, last + std::min(alike, (count - last) / size) * size);
  return most;
}

class ChooseGroups : public testing::TestWithParam<std::tuple<std::uint32_t, bool>> {};

/// All grants of the device that is most common, and of the others those at its ends.
TEST_P(ChooseGroups, NeverMoreThanGrantedNeverTwiceAndAsManyAsPossible) {
  const auto [size, in_the_last] = GetParam();
  for (std::uint32_t sms = 1; sms <= 132; ++sms) {
    const std::vector<std::uint32_t> starts = divided(sms, size, in_the_last);
    for (std::uint32_t first = 0; first < sms; ++first) {
      for (std::uint32_t next = first + 1; next <= sms; ++next) {
        if (sms < 132 && first != 0 && next != sms) continue;
        const GroupRun run = choose_groups(starts, first, next - first, false);
        ASSERT_LE(sms_of(starts, run), next - first) << sms << ": from " << first << " to " << next;
        ASSERT_EQ(sms_of(starts, run), most_of(starts, size, first, next - first))
            << sms << ": from " << first << " to " << next;
        for (const std::uint32_t end : {next + 1, next + size, next + size + 1, sms}) {
          if (end <= next || end > sms) continue;
          const GroupRun other = choose_groups(starts, next, end - next, false);
          ASSERT_TRUE(other.begin == other.end || run.end <= other.begin)
              << sms << ": from " << first << " to " << next << ", and to " << end;
        }
      }
    }
  }
}

TEST_P(ChooseGroups, AsManyAsTheProgramIsToldOfUnlessTheLastGroupIsLarge) {
  const auto [size, in_the_last] = GetParam();
  const std::vector<std::uint32_t> starts = divided(132, size, in_the_last);
  const std::uint32_t last = starts[starts.size() - 2], missing = 132 - last > size ? size : 0;
  for (std::uint32_t first = 0; first < 132; ++first) {
    for (std::uint32_t count = size; first + count <= 132; ++count) {
      const std::uint32_t sms = sms_of(starts, choose_groups(starts, first, count, false)), told = count - count % size;
      ASSERT_GE(sms + (first + count <= last ? 0 : missing), told) << count << " from " << first;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ChooseGroups, testing::Combine(testing::Values(2u, 4u, 8u), testing::Bool()));

TEST(ChooseGroups, OfAnH200AtBothEnds) {
  const std::vector<std::uint32_t> starts = divided(132, 8, true);
  const auto sms = [&](std::uint32_t first, std::uint32_t count) {
    return sms_of(starts, choose_groups(starts, first, count, false));
  };
  EXPECT_EQ(sms(0, 96), 96u);
  EXPECT_EQ(sms(0, 99), 96u);
  EXPECT_EQ(sms(33, 99), 92u) << "the last group of 12 and ten more, rather than eleven";
  EXPECT_EQ(sms(36, 96), 92u);
  EXPECT_EQ(sms(8, 124), 124u);
  EXPECT_EQ(sms(8, 99), 96u);
  EXPECT_EQ(sms(124, 8), 0u) << "the last group is larger";
}

TEST(ChooseGroups, WithinTheGrantAreThoseWhoseFirstPairBelongsToIt) {
  const std::vector<std::uint32_t> starts = divided(132, 8, true);
  for (std::uint32_t first = 0; first < 132; ++first) {
    for (std::uint32_t count = 1; first + count <= 132; ++count) {
      const GroupRun run = choose_groups(starts, first, count, true);
      if (run.begin == run.end) continue;
      ASSERT_GE(starts[run.begin] + 1, first) << count << " from " << first;
      ASSERT_LE(starts[run.end], first + count) << count << " from " << first;
    }
  }
  const auto sms = [&](std::uint32_t first, std::uint32_t count, bool within) {
    return sms_of(starts, choose_groups(starts, first, count, within));
  };
  EXPECT_EQ(sms(14, 118, true), 116u);
  EXPECT_EQ(sms(9, 40, true), 40u) << "SM 8 is of a pair whose last SM is granted";
  EXPECT_EQ(sms(14, 40, true), 32u);
  EXPECT_EQ(sms(14, 40, false), 40u) << "of which SMs 8 to 13 are others'";
}

TEST(SmGroups, WhatAPartOfTheDevicesLastSmsHas) {
  for (const std::uint32_t device : {132u, 144u, 36u}) {
    const std::uint32_t size = group_sms(device);
    const std::vector<std::uint32_t> starts = divided(device, size, true);
    for (std::uint32_t sms = size + device % size; sms <= device; ++sms)
      EXPECT_EQ(in_last_groups(sms, device), sms_of(starts, choose_groups(starts, device - sms, sms, false))) << sms;
  }
  EXPECT_EQ(in_last_groups(8, 132), 8u) << "less than the last group has";
}

TEST(SmGroups, AGrantIsMovedWhereFewerSmsCanBeDivided) {
  EXPECT_EQ(first_within(92, 40, 132), 92u);
  EXPECT_EQ(first_within(92, 40, 98), 58u);
  EXPECT_EQ(first_within(0, 40, 98), 0u);
  EXPECT_EQ(first_within(4, 132, 98), 0u);
}

TEST(SmGroups, LessThanAGroupStaysAsItIs) {
  EXPECT_EQ(in_whole_groups(7, 132), 7u);
  EXPECT_EQ(in_whole_groups(1, 8), 1u);
  EXPECT_EQ(in_whole_groups(0, 132), 0u);
}

}  // namespace
}  // namespace gpuslice
