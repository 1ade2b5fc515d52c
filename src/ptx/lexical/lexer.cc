#include "ptx/lexical/lexer.h"

#include <string>

namespace gpuctl::ptx {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool is_alpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_name_start(char c) {
  return is_alpha(c) || c == '_' || c == '$' || c == '%';
}
bool is_name_char(char c) {
  return is_alpha(c) || is_digit(c) || c == '_' || c == '$';
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {
    while (!text_.empty() && text_.back() == '\0') text_.remove_suffix(1);
  }

  Result<std::vector<Token>> run() {
    tokens_.reserve(text_.size() / 4 + 1);
    for (;;) {
      if (!skip_blanks()) return fail_here("comment has no end");
      if (at_ == text_.size()) break;
      const std::size_t length = token_length();
      if (length == 0) return fail_here(problem_);
      tokens_.push_back({kind_, text_.substr(at_, length), line_, column()});
      at_ += length;
    }
    tokens_.push_back({TokenKind::kEnd, text_.substr(at_), line_, column()});
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  std::uint32_t column() const { return static_cast<std::uint32_t>(at_ - line_start_ + 1); }
  Error fail_here(std::string_view message) const {
    return error_at({TokenKind::kPunct, text_.substr(at_, 1), line_, column()}, message);
  }

  void newline() {
    ++line_;
    line_start_ = at_ + 1;
  }

  /// False when a comment is open at the end of the text.
  bool skip_blanks() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') {
        newline();
      } else if (c == '/' && peek(1) == '/') {
        const std::size_t end = text_.find('\n', at_);
        if (end == text_.npos) {
          at_ = text_.size();
          return true;
        }
        at_ = end - 1;
      } else if (c == '/' && peek(1) == '*') {
        const std::size_t start = at_;
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == text_.npos) return false;
        for (at_ = start; at_ < end + 1; ++at_) {
          if (text_[at_] == '\n') newline();
        }
      } else if (c != ' ' && c != '\t' && c != '\r' && c != '\f' && c != '\v') {
        return true;
      }
    }
    return true;
  }

  /// Returns the length of the token here and sets kind_; returns 0 and sets problem_ if no token starts here.
  std::size_t token_length() {
    const char c = text_[at_];
    if (is_name_start(c)) {
      kind_ = TokenKind::kIdentifier;
      std::size_t n = 1;
      while (is_name_char(peek(n))) ++n;
      return n;
    }
    if (c == '.') return dot_word_length();
    if (is_digit(c)) {
      kind_ = TokenKind::kNumber;
      return number_length();
    }
    if (c == '"') return string_length();
    constexpr std::string_view kPuncts = ",;:(){}[]<>@!|+-*/%=&~^?#";
    if (kPuncts.find(c) == kPuncts.npos) {
      problem_ = "unexpected character";
      return 0;
    }
    kind_ = TokenKind::kPunct;
    return 1;
  }

  std::size_t dot_word_length() {
    kind_ = TokenKind::kDotWord;
    std::size_t n = 1;
    while (is_name_char(peek(n)) || (peek(n) == ':' && peek(n + 1) == ':' && is_name_char(peek(n + 2)))) {
      n += peek(n) == ':' ? 2 : 1;
    }
    problem_ = "a dot with no word after it";
    return n > 1 ? n : 0;
  }

  std::size_t number_length() {
    const char marker = peek(0) == '0' ? peek(1) : '\0';
    std::size_t n = 0;
    if (marker == 'x' || marker == 'X' || marker == 'f' || marker == 'F' || marker == 'd' || marker == 'D') {
      n = 2;
      while (is_hex(peek(n))) ++n;
    } else if (marker == 'b' || marker == 'B') {
      n = 2;
      while (peek(n) == '0' || peek(n) == '1') ++n;
    } else {
      while (is_digit(peek(n))) ++n;
      if (peek(n) == '.' && is_digit(peek(n + 1))) {
        ++n;
        while (is_digit(peek(n))) ++n;
      }
      const std::size_t sign = peek(n + 1) == '+' || peek(n + 1) == '-' ? 1 : 0;
      if ((peek(n) == 'e' || peek(n) == 'E') && is_digit(peek(n + 1 + sign))) {
        n += 1 + sign;
        while (is_digit(peek(n))) ++n;
      }
    }
    if (peek(n) == 'U' || peek(n) == 'u') ++n;
    if (is_name_char(peek(n))) {
      problem_ = "malformed number";
      return 0;
    }
    return n;
  }

  std::size_t string_length() {
    kind_ = TokenKind::kString;
    std::size_t n = 1;
    while (at_ + n < text_.size() && peek(n) != '"' && peek(n) != '\n') n += peek(n) == '\\' ? 2 : 1;
    problem_ = "string has no end";
    return at_ + n < text_.size() && peek(n) == '"' ? n + 1 : 0;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  std::uint32_t line_ = 1;
  TokenKind kind_ = TokenKind::kEnd;
  std::string_view problem_;
  std::vector<Token> tokens_;
};

}  // namespace

bool must_stand_apart(std::string_view left, std::string_view right) {
  const char end = left.back();
  const char next = right.front();
  if (is_name_char(next)) return is_name_char(end) || end == '%';
  if (next == '.') return is_digit(left.front());
  if (next == ':') return left.front() == '.';
  return end == '/' && (next == '/' || next == '*');
}

Error error_at(const Token& token, std::string_view message) {
  return fail(std::to_string(token.line) + ":" + std::to_string(token.column) + ": " + std::string(message));
}

Result<std::vector<Token>> lex(std::string_view text) {
  return Lexer(text).run();
}

}  // namespace gpuctl::ptx
