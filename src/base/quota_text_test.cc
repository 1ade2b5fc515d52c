#include "base/quota_text.h"

#include <gtest/gtest.h>

#include <string>

namespace gpuctl {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(QuotaText, IsATimeOfAPeriod) {
  EXPECT_FALSE(parse_quota("none")->any());
  EXPECT_EQ(parse_quota("40ms/100ms"), (Quota{milliseconds{40}, milliseconds{100}, {}}));
  EXPECT_EQ(parse_quota("0.1s/1s"), (Quota{milliseconds{100}, milliseconds{1000}, {}}));
  EXPECT_EQ(parse_quota("1500us/10ms"), (Quota{microseconds{1500}, milliseconds{10}, {}}));
  EXPECT_EQ(parse_quota("10ms/10ms"), (Quota{milliseconds{10}, milliseconds{10}, {}}));
}

TEST(QuotaText, WhatCannotBeKeptIsNone) {
  for (const char* text :
       {"", "40ms", "40/100", "40ms/", "/100ms", "110ms/100ms", "0ms/100ms", "999us/100ms", "5ms/9ms", "40ms/1.1s",
        "-1ms/100ms", "40ms/100ms ", "40ms/100ms/1s", "40 ms/100 ms", "2x/100ms"})
    EXPECT_FALSE(parse_quota(text)) << text;
  EXPECT_FALSE(parse_quota("40." + std::string(40, '0') + "ms/100ms")) << "longer than anybody writes";
}

TEST(QuotaText, ABurstIsATime) {
  EXPECT_EQ(parse_burst("none"), milliseconds{0});
  EXPECT_EQ(parse_burst("20ms"), milliseconds{20});
  for (const char* text : {"", "20", "0ms", "2s", "20ms/100ms"}) EXPECT_FALSE(parse_burst(text)) << text;
}

}  // namespace
}  // namespace gpuctl
