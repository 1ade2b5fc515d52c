#include "base/one_line.h"

#include <gtest/gtest.h>

namespace gpuctl {
namespace {

TEST(OneLine, ShowsWhatIsWritten) {
  for (const char* text : {"", "train.py --epochs 3", "Zürich, 東京, \U0001f600, d\u0301"})
    EXPECT_EQ(one_line(text), text);
}

TEST(OneLine, ControlsNoTerminal) {
  EXPECT_EQ(one_line("a\x1b[2Jb\r\n\tc\x7f", '?'), "a?[2Jb???c?");
  for (const char* text : {"\u0085", "\u009b", "\u009d", "\u061c", "\u200b", "\u200e", "\u200f", "\u2028", "\u2029",
                           "\u202a", "\u202e", "\u2066", "\u2069", "\ufeff", "\U000e0001"})
    EXPECT_EQ(one_line("a" + std::string(text) + "b"), "a b") << static_cast<int>(text[0]);
}

TEST(OneLine, AByteOfNoCharacterIsNone) {
  EXPECT_EQ(one_line("a\x9b"
                     "2Jb\xff"),
            "a 2Jb ");
  EXPECT_EQ(one_line("\xed\xa0\x80\xc2"), "    ");
}

}  // namespace
}  // namespace gpuctl
