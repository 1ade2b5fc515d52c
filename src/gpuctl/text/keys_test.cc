#include "gpuctl/text/keys.h"

#include <gtest/gtest.h>

#include <random>

namespace gpuctl::cli {
namespace {

using enum Key::Kind;
using Keys = std::vector<Key>;

Keys keys(std::string text, bool all = true) {
  return take_keys(text, all);
}

TEST(Keys, TextAndSequences) {
  EXPECT_EQ(keys("q"), (Keys{{character, 'q'}}));
  EXPECT_EQ(keys("\x1b[A\x1b[B\x1bOA"), (Keys{{up}, {down}, {up}}));
  EXPECT_EQ(keys("\x1b[5~\x1b[6~\x1b[H\x1b[4~"), (Keys{{page_up}, {page_down}, {home}, {end}}));
  EXPECT_EQ(keys("a\r\t\x7f"), (Keys{{character, 'a'}, {enter}, {tab}, {backspace}}));
}

TEST(Keys, OthersAreDropped) {
  EXPECT_EQ(keys("\x1b[15~\x1b[1;5Cx\x01"), (Keys{{character, 'x'}}));
}

TEST(Keys, EscapeIsAKeyOnceNothingFollows) {
  std::string read = "\x1b";
  EXPECT_EQ(take_keys(read, false), Keys{});
  EXPECT_EQ(read, "\x1b");
  EXPECT_EQ(take_keys(read, true), (Keys{{escape}}));
  EXPECT_EQ(read, "");
  EXPECT_EQ(keys("\x1bq"), (Keys{{escape}, {character, 'q'}}));
}

TEST(Keys, ASequenceThatComesInPartsIsOneKey) {
  std::string read = "a\x1b[";
  EXPECT_EQ(take_keys(read, false), (Keys{{character, 'a'}}));
  read += "6";
  EXPECT_EQ(take_keys(read, false), Keys{});
  read += "~b";
  EXPECT_EQ(take_keys(read, false), (Keys{{page_down}, {character, 'b'}}));
}

TEST(Keys, WhateverIsReadComesToAnEnd) {
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    std::string read;
    for (std::size_t length = random() % 20; length-- > 0;) read += "\x1b[O~;5Aq\xc3"[random() % 10];
    take_keys(read, true);
    ASSERT_EQ(read, "");
  }
}

}  // namespace
}  // namespace gpuctl::cli
