#include "gpuctl/text/units.h"

#include <gtest/gtest.h>

namespace gpuctl::cli {
namespace {

TEST(Units, Integers) {
  EXPECT_EQ(parse_integer("0"), 0);
  EXPECT_EQ(parse_integer("-12"), -12);
  for (const char* text : {"", " 1", "1 ", "+1", "1.0", "0x1", "1e3", "99999999999999999999", "-"})
    EXPECT_EQ(parse_integer(text), std::nullopt) << text;
}

TEST(Units, Seconds) {
  EXPECT_EQ(parse_seconds("0.5"), 0.5);
  EXPECT_EQ(parse_seconds("2"), 2.0);
  for (const char* text : {"", "0", "-1", "inf", "nan", "1s", "1e9", "."})
    EXPECT_EQ(parse_seconds(text), std::nullopt) << text;
}

TEST(Units, Milliseconds) {
  EXPECT_EQ(parse_milliseconds("100ms"), 100);
  EXPECT_EQ(parse_milliseconds("2s"), 2000);
  EXPECT_EQ(parse_milliseconds("1.5s"), 1500);
  EXPECT_EQ(parse_milliseconds("0ms"), 0);
  for (const int ms : {1, 9, 1001, 1009, 2675, 3'599'999}) {
    const std::string thousandths = std::to_string(1000 + ms % 1000).substr(1);
    EXPECT_EQ(parse_milliseconds(std::to_string(ms / 1000) + '.' + thousandths + 's'), ms);
  }
  EXPECT_EQ(parse_milliseconds("1.5000s"), 1500);
  for (const char* text : {"", "s", "ms", "100", "1.5ms", "0.0001s", "-1s", "1 s", "1us", "1e3s", "99999999999s"})
    EXPECT_EQ(parse_milliseconds(text), std::nullopt) << text;
}

TEST(Units, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(3LL << 29), "1.5 GiB");
  EXPECT_EQ(format_bytes(139LL << 30), "139 GiB");
  EXPECT_EQ(format_bytes((1LL << 20) - 1), "1 MiB");
}

TEST(Units, Times) {
  EXPECT_EQ(format_us(0), "0 us");
  EXPECT_EQ(format_us(0.5), "0.5 us");
  EXPECT_EQ(format_us(62.04), "62 us");
  EXPECT_EQ(format_us(999.4), "999 us");
  EXPECT_EQ(format_us(999.7), "1 ms");
  EXPECT_EQ(format_us(1250), "1.25 ms");
  EXPECT_EQ(format_us(3.5e6), "3.5 s");
}

TEST(Units, RatesAndCounts) {
  EXPECT_EQ(format_rate(0), "0");
  EXPECT_EQ(format_rate(0.3), "0.3");
  EXPECT_EQ(format_rate(0.001), "<0.01");
  EXPECT_EQ(format_rate(412.4), "412");
  EXPECT_EQ(format_rate(12400), "12.4k");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1k");
  EXPECT_EQ(format_count(3'140'000), "3.14M");
}

TEST(Units, Durations) {
  EXPECT_EQ(format_duration_s(12), "12 s");
  EXPECT_EQ(format_duration_s(300), "5 min");
  EXPECT_EQ(format_duration_s(303), "5 min 3 s");
  EXPECT_EQ(format_duration_s(7500), "2 h 5 min");
  EXPECT_EQ(format_duration_s(3 * 86400 + 4 * 3600 + 59), "3 d 4 h");
}

}  // namespace
}  // namespace gpuctl::cli
