#include "base/limit_text.h"

#include <gtest/gtest.h>

namespace gpuctl {
namespace {

TEST(SizeText, BytesAndUnits) {
  EXPECT_EQ(parse_size("0"), 0);
  EXPECT_EQ(parse_size("4096"), 4096);
  EXPECT_EQ(parse_size("4096B"), 4096);
  EXPECT_EQ(parse_size("1k"), 1024);
  EXPECT_EQ(parse_size("512M"), 512LL << 20);
  EXPECT_EQ(parse_size("1.5G"), 3LL << 29);
  EXPECT_EQ(parse_size("2GiB"), 2LL << 30);
  EXPECT_EQ(parse_size("2GB"), 2LL << 30);
  EXPECT_EQ(parse_size("1T"), 1LL << 40);
  for (const char* text : {"", "G", "16X", "16GG", "-1G", "1.5", "1..5G", "16 G", "99999999999T", "1e3", "Gi", "."})
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
}

TEST(SizeText, IsReadAsTheSameNumber) {
  for (const char* text : {"0", "1000", "4K", "1536M", "80G", "1T", "4096T"})
    EXPECT_EQ(size_text(*parse_size(text)), text);
  EXPECT_EQ(size_text(5LL << 30 | 1), "5368709121");
}

}  // namespace
}  // namespace gpuctl
