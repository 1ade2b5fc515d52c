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

TEST(QuotaText, SingleGpusHaveTheirOwn) {
  for (const char* text : {"none", "40ms/100ms", "0:40ms/100ms", "40ms/100ms,1:none", "none,GPU-1b:1ms/1s,0:1ms/10ms"})
    EXPECT_TRUE(is_quota(text)) << text;
  for (const char* text : {"", "40ms/100ms,", ":40ms/100ms", "0:", "0:40ms", "0:40ms/100ms,40ms/100ms",
                           "0:40ms/100ms,0:none", "50%", "a:40ms/100ms", "40ms/100ms,none"})
    EXPECT_FALSE(is_quota(text)) << text;
  EXPECT_TRUE(is_burst("20ms,1:none"));
  EXPECT_FALSE(is_burst("20ms,1:40ms/100ms"));
  constexpr const char* kText = "40ms/100ms,1:none,GPU-1b:1ms/10ms";
  EXPECT_EQ(quota_on(kText, 0, "GPU-aa"), "40ms/100ms");
  EXPECT_EQ(quota_on(kText, 1, "GPU-bb"), "none");
  EXPECT_EQ(quota_on(kText, 2, "GPU-1b2c"), "1ms/10ms");
  EXPECT_EQ(quota_on("0:40ms/100ms", 1, "GPU-bb"), "none");
  EXPECT_EQ(gpus_of_quota(kText), (std::vector<std::string>{"1", "GPU-1b"}));
}

}  // namespace
}  // namespace gpuctl
