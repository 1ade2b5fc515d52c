#include "base/latency_text.h"

#include <gtest/gtest.h>

namespace gpuctl {
namespace {

using std::chrono::nanoseconds;

TEST(LatencyText, ReadsTimesAndMultiples) {
  EXPECT_EQ(parse_latency("5ms"), LatencyTarget{.at_most = std::chrono::milliseconds(5)});
  EXPECT_EQ(parse_latency("0.5ms"), LatencyTarget{.at_most = std::chrono::microseconds(500)});
  EXPECT_EQ(parse_latency("10us"), LatencyTarget{.at_most = std::chrono::microseconds(10)});
  EXPECT_EQ(parse_latency("1.5s"), LatencyTarget{.at_most = std::chrono::milliseconds(1500)});
  EXPECT_EQ(parse_latency("1x"), LatencyTarget{.multiple = 1});
  EXPECT_EQ(parse_latency("1.3x"), LatencyTarget{.multiple = 1.3});
  EXPECT_EQ(parse_latency("none"), LatencyTarget{});
  EXPECT_FALSE(parse_latency("none")->any());
  EXPECT_TRUE(parse_latency("2x")->any());
}

TEST(LatencyText, RefusesAllElse) {
  for (const char* text :
       {"",      "5",   "x",    "ms",   "5 ms", "5m",    "0.9x",  "1001x", "-1ms",   "9us",
        "3601s", "nan", "nanx", "infx", "inf",  "1e3ms", "1.3xx", "1.3X",  "0x10ms", "99999999999999999999999s",
        ".5ms"})
    EXPECT_FALSE(parse_latency(text)) << text;
}

}  // namespace
}  // namespace gpuctl
