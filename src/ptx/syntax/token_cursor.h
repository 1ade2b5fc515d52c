// A place in the tokens of a PTX text, with the operations that all parts of the parser share. Only the parser's files
// include it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ptx/lexical/constant.h"
#include "ptx/lexical/lexer.h"
#include "ptx/syntax/register_scopes.h"

namespace gpuctl::ptx {

/// Nesting limit of { } scopes, operands and initializers; keeps hostile text from exhausting the stack.
inline constexpr int kMaxNesting = 200;

/// Thrown inside the parser only; parse() turns it into a Result.
struct Mistake {
  Error error;
};

class TokenCursor {
 public:
  /// As lex() returns them: at least one, the last one of kind kEnd.
  explicit TokenCursor(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  RegisterScopes registers;  ///< declared up to here

  /// The token `ahead` of this place, or the last one.
  const Token& peek(std::size_t ahead = 0) const;

  [[noreturn]] void mistake(const Token& token, const std::string& message) const;
  /// Reports that `what` was expected here.
  [[noreturn]] void expected(const std::string& what) const;

  /// Each of these moves past the token that it takes.
  std::string next();
  bool accept(char punct);
  bool accept(std::string_view word);
  void expect(char punct);
  void expect(std::string_view word);
  std::string take(TokenKind kind, const std::string& what);
  std::uint64_t take_integer(const std::string& what);
  std::optional<Constant> accept_constant() { return read_constant(tokens_, at_); }
  void skip(std::size_t count) { at_ += count; }
  /// Appends the tokens of a group that starts with `(` or `{`, nested ones included.
  void take_group(std::vector<std::string>& tokens);

  std::size_t place() const { return at_; }
  void go_back(std::size_t place) { at_ = place; }
  /// The tokens from `place` up to here, as a list and as one text without spaces.
  std::vector<std::string> tokens_since(std::size_t place) const;
  std::string text_since(std::size_t place) const;

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

}  // namespace gpuctl::ptx
