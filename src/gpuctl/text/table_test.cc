#include "gpuctl/text/table.h"

#include <gtest/gtest.h>

namespace gpuctl::cli {
namespace {

using Lines = std::vector<std::string>;
using enum Table::Align;

TEST(Table, AlignsColumns) {
  Table table({{"NAME", left}, {"N", right}, {"NOTE", left}});
  table.add_row({"a", "1", ""});
  table.add_row({"longer", "1000", "x"});
  EXPECT_EQ(table.lines(), (Lines{"NAME       N  NOTE", "a          1", "longer  1000  x"}));
}

TEST(Table, CountsCodePoints) {
  Table table({{"N", left}, {"X", left}});
  table.add_row({"é█", "1"});
  table.add_row({"abc", "2"});
  EXPECT_EQ(table.lines(), (Lines{"N    X", "é█   1", "abc  2"}));
}

TEST(Table, CountsTwoColumnsForWideCharacters) {
  EXPECT_EQ(display_width("日本"), 4u);
  EXPECT_EQ(display_width("한"), 2u);
  EXPECT_EQ(display_width("ａ！"), 4u);
  EXPECT_EQ(display_width("🚀x"), 3u);
  EXPECT_EQ(display_width("⭐✅"), 4u);
  EXPECT_EQ(display_width("éж█→·"), 5u);
  EXPECT_EQ(display_width("\xff\xe6x"), 3u);
  Table table({{"NAME", left}, {"X", left}});
  table.add_row({"学習🚀", "1"});
  table.add_row({"abcdef", "2"});
  EXPECT_EQ(table.lines(), (Lines{"NAME    X", "学習🚀  1", "abcdef  2"}));
}

TEST(Table, ShrinksThenDropsThenCuts) {
  Table table({{"PID", right}, {"STATE", left, 0, 1}, {"LAST", left, 0, 2}, {"COMMAND", left, 7}});
  table.add_row({"1", "running", "x", "a long command line"});
  EXPECT_EQ(table.lines(37)[1], "  1  running  x     a long command l~");
  EXPECT_EQ(table.lines(27)[1], "  1  running  x     a long~");
  EXPECT_EQ(table.lines(26)[0], "PID  STATE    COMMAND");
  EXPECT_EQ(table.lines(26)[1], "  1  running  a long comm~");
  EXPECT_EQ(table.lines(20)[1], "  1  a long command~");
  EXPECT_EQ(table.lines(6)[1], "  1  ~");
  for (std::size_t width = 1; width < 60; ++width)
    for (const std::string& line : table.lines(width)) EXPECT_LE(display_width(line), width);
}

TEST(Table, LeavesOutWhatSaysNothing) {
  Table table({{"A", left}, {"B", left, 0, 0, true}, {"C", left, 0, 0, true}});
  EXPECT_EQ(table.lines(), (Lines{"A  B  C"}));
  table.add_row({"-", "-", "-"});
  table.add_row({"-", "-", "1"});
  EXPECT_EQ(table.lines(), (Lines{"A  C", "-  -", "-  1"}));
  EXPECT_EQ(table.lines(80), (Lines{"A  C", "-  -", "-  1"}));
}

TEST(Table, FitCutsBetweenCodePoints) {
  EXPECT_EQ(fit("abc", 3), "abc");
  EXPECT_EQ(fit("abcd", 3), "ab~");
  EXPECT_EQ(fit("ééé", 2), "é~");
  EXPECT_EQ(fit("日本", 4), "日本");
  EXPECT_EQ(fit("日本語", 5), "日本~");
  EXPECT_EQ(fit("日本語", 4), "日~");
  EXPECT_EQ(fit("日本語", 2), "~");
  EXPECT_EQ(fit_end("abcd", 4), "abcd");
  EXPECT_EQ(fit_end("abcde", 4), "~cde");
  EXPECT_EQ(fit_end("日本語", 4), "~語");
  EXPECT_EQ(fit_end("abc", 0), "");
  EXPECT_EQ(fit("abc", 1), "~");
  EXPECT_EQ(fit("abc", 0), "");
}

TEST(Table, PrintableTakesTheTeethOutOfTerminalSequences) {
  EXPECT_EQ(printable("a\x1b[2Jb\n\x7f"), "a?[2Jb??");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31mé"),
            "?31mé");
  EXPECT_EQ(printable("\xff"), "\xef\xbf\xbd");
}

}  // namespace
}  // namespace gpuctl::cli
