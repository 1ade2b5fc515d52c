#include "ptx/lexer.h"

#include <gtest/gtest.h>

namespace gpuctl::ptx {
namespace {

std::vector<std::string> texts(std::string_view source) {
  const auto tokens = lex(source);
  std::vector<std::string> result;
  if (!tokens) return {"error " + tokens.error().message};
  for (const Token& token : *tokens) result.emplace_back(token.text);
  return result;
}

using List = std::vector<std::string>;

TEST(Lexer, SplitsAnInstruction) {
  EXPECT_EQ(texts("@!%p1 ld.global.v2.u32 {%r1,_}, [%rd1+-8];"),
            (List{"@", "!", "%p1", "ld",   ".global", ".v2", ".u32", "{", "%r1", ",", "_",
                  "}", ",", "[",   "%rd1", "+",       "-",   "8",    "]", ";",   ""}));
}

TEST(Lexer, KeepsScopedQualifiersTogether) {
  EXPECT_EQ(texts("mbarrier.try_wait.shared::cta.b64 p"),
            (List{"mbarrier", ".try_wait", ".shared::cta", ".b64", "p", ""}));
  EXPECT_EQ(texts("tex.2d.v4.f32.f32"), (List{"tex", ".2d", ".v4", ".f32", ".f32", ""}));
  EXPECT_EQ(texts("$L__1: x"), (List{"$L__1", ":", "x", ""}));
}

TEST(Lexer, ReadsNumbers) {
  EXPECT_EQ(texts("9.0 0f3F800000 0dBFF0000000000000 0xFFu 1e-5 10U"),
            (List{"9.0", "0f3F800000", "0dBFF0000000000000", "0xFFu", "1e-5", "10U", ""}));
  EXPECT_EQ(texts("12ab"), (List{"error 1:1: malformed number"}));
}

TEST(Lexer, SkipsCommentsAndCountsLines) {
  const auto tokens = lex("a // one\n/* two\n three */ b\n\n  c");
  ASSERT_TRUE(tokens);
  ASSERT_EQ(tokens->size(), 4u);
  EXPECT_EQ((*tokens)[1].line, 3u);
  EXPECT_EQ((*tokens)[1].column, 11u);
  EXPECT_EQ((*tokens)[2].line, 5u);
  EXPECT_EQ((*tokens)[2].column, 3u);
}

TEST(Lexer, NamesTheErrorsPlace) {
  EXPECT_EQ(texts("a\n  /* x"), (List{"error 2:3: comment has no end"}));
  EXPECT_EQ(texts("a\n  \"x"), (List{"error 2:3: string has no end"}));
  EXPECT_EQ(texts("ld . x"), (List{"error 1:4: a dot with no word after it"}));
  EXPECT_EQ(texts("\x01"), (List{"error 1:1: unexpected character"}));
}

TEST(Lexer, IgnoresPaddingAtTheEnd) {
  EXPECT_EQ(texts(std::string_view("ret;\0\0", 6)), (List{"ret", ";", ""}));
}

}  // namespace
}  // namespace gpuctl::ptx
