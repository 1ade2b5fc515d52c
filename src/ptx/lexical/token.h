// One token of PTX text, as the lexer sees it.
#pragma once

#include <cstdint>
#include <string_view>

namespace gpuctl::ptx {

enum class TokenKind : std::uint8_t {
  kIdentifier,  ///< `add`, `%r1`, `$L__BB0_1`, `_`
  kDotWord,     ///< `.visible`, `.u32`, `.2d`, `.shared::cta`: the dot and the word joined to it
  kNumber,      ///< `12`, `0x1F`, `0f3F800000`, `1.5`, `9.0`; never a sign
  kString,      ///< with its quotes
  kPunct,       ///< one character, or `<<` `>>` `==` `!=` `<=` `>=` `&&` `||` as two tokens of one character each
  kEnd,         ///< after the last token, text empty
};

/// `text` points into the text that was lexed, which must outlive the token.
struct Token {
  TokenKind kind;
  std::string_view text;
  std::uint32_t line;    ///< from 1
  std::uint32_t column;  ///< from 1, in bytes

  bool is(char punct) const { return kind == TokenKind::kPunct && text[0] == punct; }
  bool is(std::string_view word) const { return kind != TokenKind::kString && text == word; }
};

}  // namespace gpuctl::ptx
