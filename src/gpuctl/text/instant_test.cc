#include "gpuctl/text/instant.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

namespace gpuctl::cli::instant_test {
namespace {

constexpr std::int64_t kNow = 1'795'860'000;

TEST(Instant, IsATimeBeforeNow) {
  EXPECT_EQ(parse_instant("90s", kNow), kNow - 90);
  EXPECT_EQ(parse_instant("30min", kNow), kNow - 1800);
  EXPECT_EQ(parse_instant("12h", kNow), kNow - 12 * 3600);
  EXPECT_EQ(parse_instant("7d", kNow), kNow - 7 * 86400);
  EXPECT_EQ(parse_instant("0s", kNow), kNow);
}

TEST(Instant, IsADayOrATimeWhereTheUserIs) {
  ::setenv("TZ", "UTC-2", 1);  // two hours ahead
  ::tzset();
  EXPECT_EQ(parse_instant("2026-11-28", kNow), 1'795'816'800);
  EXPECT_EQ(parse_instant("2026-11-28 10:15", kNow), 1'795'816'800 + 10 * 3600 + 15 * 60);
  EXPECT_EQ(parse_instant("2026-11-28T10:15", kNow), 1'795'816'800 + 10 * 3600 + 15 * 60);
  ::unsetenv("TZ");
  ::tzset();
}

TEST(Instant, IsNothingElse) {
  for (const char* text : {"", "7", "d", "-1d", "1.5h", "7 d", "99999999999d", "2026", "2026-13-01", "2026-02-30",
                           "2026-11-28 25:00", "2026-11-28 10:15 UTC", "yesterday", "1960-01-01"})
    EXPECT_EQ(parse_instant(text, kNow), std::nullopt) << text;
}

}  // namespace
}  // namespace gpuctl::cli::instant_test
