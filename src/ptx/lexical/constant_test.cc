#include "ptx/lexical/constant.h"

#include <gtest/gtest.h>

#include "ptx/lexical/lexer.h"

namespace gpuctl::ptx {
namespace {

std::optional<Constant> read(std::string_view text, std::size_t consumed) {
  const auto tokens = lex(text);
  std::size_t at = 0;
  const auto value = read_constant(*tokens, at);
  EXPECT_EQ(at, consumed) << text;
  return value;
}

TEST(Constant, Numbers) {
  EXPECT_EQ(read_number("12")->bits, 12u);
  EXPECT_EQ(read_number("0x1fU")->bits, 31u);
  EXPECT_EQ(read_number("017")->bits, 15u);
  EXPECT_EQ(read_number("0b101")->bits, 5u);
  EXPECT_EQ(read_number("0")->bits, 0u);
  EXPECT_EQ(read_number("18446744073709551615")->bits, ~std::uint64_t{0});
  EXPECT_FALSE(read_number("18446744073709551616"));
}

TEST(Constant, Floats) {
  EXPECT_EQ(read_number("0f3F800000")->bits, 0x3f800000u);
  EXPECT_EQ(read_number("0f3F800000")->float_width, 32);
  EXPECT_EQ(read_number("0dBFF0000000000000")->bits, 0xbff0000000000000u);
  EXPECT_EQ(read_number("1.5")->bits, 0x3ff8000000000000u);
  EXPECT_FALSE(read_number("0f3F8000"));
  EXPECT_EQ(read("-0f3F800000", 2)->bits, 0xbf800000u);
}

TEST(Constant, Expressions) {
  EXPECT_EQ(read("-12", 2)->bits, static_cast<std::uint64_t>(-12));
  EXPECT_EQ(read("2+3*4", 5)->bits, 14u);
  EXPECT_EQ(read("(2+3)*4", 7)->bits, 20u);
  EXPECT_EQ(read("1<<4|1", 6)->bits, 17u);
  EXPECT_EQ(read("10-4-3", 5)->bits, 3u);
  EXPECT_EQ(read("1?2:3", 5)->bits, 2u);
  EXPECT_EQ(read("~0", 2)->bits, ~std::uint64_t{0});
}

TEST(Constant, RefusesWhatIsNone) {
  EXPECT_FALSE(read("%r1", 0));
  EXPECT_FALSE(read("4/0", 0));
  EXPECT_FALSE(read("(4", 0));
  EXPECT_FALSE(read(std::string(100000, '('), 0));
}

}  // namespace
}  // namespace gpuctl::ptx
