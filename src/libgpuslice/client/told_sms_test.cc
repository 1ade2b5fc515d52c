#include "libgpuslice/client/told_sms.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace gpuslice {
namespace {

TEST(FixedSms, TellsWhatTheSliceIsSureOf) {
  FixedSms sms;
  EXPECT_EQ(sms.fewer(), 0u);
  EXPECT_EQ(sms.tell(40, 132), 40u);
  EXPECT_EQ(sms.fewer(), 40u);
}

TEST(FixedSms, TheDevicesLastOnesCountAsTheyAreDivided) {
  FixedSms last, any;
  EXPECT_EQ(last.tell(118, 132, true), 116u);
  EXPECT_EQ(any.tell(118, 132), 112u);
}

TEST(FixedSms, AllWhereNothingIsLimited) {
  FixedSms sms;
  EXPECT_EQ(sms.tell(0, 132), 132u);
  EXPECT_EQ(sms.fewer(), 0u);
  EXPECT_EQ(sms.tell(40, 132), 132u) << "a limit that comes later changes nothing";
}

TEST(FixedSms, TheFirstAnswerStays) {
  FixedSms sms;
  EXPECT_EQ(sms.tell(40, 132), 40u);
  EXPECT_EQ(sms.tell(4, 132), 40u);
  EXPECT_EQ(sms.tell(0, 132), 40u);
}

TEST(FixedSms, NeverMoreThanTheDriverSays) {
  FixedSms sms;
  EXPECT_EQ(sms.tell(0xffffffff, 132), 132u);
  FixedSms fewer;
  EXPECT_EQ(fewer.tell(40, 16), 16u) << "an MPS percentage, for example";
  EXPECT_EQ(fewer.fewer(), 0u);
}

TEST(FixedSms, ThreadsThatAskAtOnceGetTheSame) {
  for (int round = 0; round < 50; ++round) {
    FixedSms sms;
    std::vector<std::uint32_t> answers(4);
    std::vector<std::thread> threads;
    for (std::uint32_t n = 0; n < answers.size(); ++n) threads.emplace_back([&, n] { answers[n] = sms.tell(n, 132); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(std::set<std::uint32_t>(answers.begin(), answers.end()).size(), 1u);
  }
}

TEST(PartOf, GridsOfWholeSmsStayWhole) {
  for (int per_sm = 1; per_sm <= 32; ++per_sm) EXPECT_EQ(part_of(per_sm * 132, 40, 132), per_sm * 40);
  EXPECT_EQ(part_of(7 * 132, 132, 132), 7 * 132);
}

TEST(PartOf, WhatIsCountedOtherwiseIsRoundedDownButNotToNothing) {
  EXPECT_EQ(part_of(16, 40, 132), 4);  // clusters
  EXPECT_EQ(part_of(2, 1, 132), 1);
  EXPECT_EQ(part_of(0, 40, 132), 0) << "none fits on the device either";
  EXPECT_EQ(part_of(0x7fffffff, 131, 132), 2131214831);
}

}  // namespace
}  // namespace gpuslice
