#include "ptx/syntax/token_cursor.h"

#include <algorithm>

namespace gpuctl::ptx {

const Token& TokenCursor::peek(std::size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

void TokenCursor::mistake(const Token& token, const std::string& message) const {
  throw Mistake{error_at(token, message)};
}

void TokenCursor::expected(const std::string& what) const {
  const Token& token = peek();
  const std::string found = token.kind == TokenKind::kEnd ? "the end of the text" : "'" + std::string(token.text) + "'";
  mistake(token, "expected " + what + ", found " + found);
}

std::string TokenCursor::next() {
  if (peek().kind == TokenKind::kEnd) expected("more text");
  return std::string(tokens_[at_++].text);
}

bool TokenCursor::accept(char punct) {
  if (!peek().is(punct)) return false;
  ++at_;
  return true;
}

bool TokenCursor::accept(std::string_view word) {
  if (!peek().is(word)) return false;
  ++at_;
  return true;
}

void TokenCursor::expect(char punct) {
  if (!accept(punct)) expected(std::string("'") + punct + "'");
}

void TokenCursor::expect(std::string_view word) {
  if (!accept(word)) expected("'" + std::string(word) + "'");
}

std::string TokenCursor::take(TokenKind kind, const std::string& what) {
  if (peek().kind != kind) expected(what);
  return next();
}

std::uint64_t TokenCursor::take_integer(const std::string& what) {
  const std::optional<Constant> value = accept_constant();
  if (!value || value->float_width != 0) expected(what);
  return value->bits;
}

void TokenCursor::take_group(std::vector<std::string>& tokens) {
  const Token& start = peek();
  int depth = 0;
  do {
    if (peek().kind == TokenKind::kEnd) mistake(start, "group is never closed");
    if (peek().is('(') || peek().is('{')) ++depth;
    if (peek().is(')') || peek().is('}')) --depth;
    tokens.push_back(next());
  } while (depth > 0);
}

std::vector<std::string> TokenCursor::tokens_since(std::size_t place) const {
  std::vector<std::string> tokens;
  for (std::size_t i = place; i < at_; ++i) tokens.emplace_back(tokens_[i].text);
  return tokens;
}

std::string TokenCursor::text_since(std::size_t place) const {
  std::string text;
  for (std::size_t i = place; i < at_; ++i) text += tokens_[i].text;
  return text;
}

}  // namespace gpuctl::ptx
