#include "ptx/lexical/constant.h"

#include <bit>
#include <charconv>

namespace gpuctl::ptx {
namespace {

constexpr int kMaxDepth = 64;  // of nested parentheses and signs: keeps hostile text from exhausting the stack

class Reader {
 public:
  Reader(const std::vector<Token>& tokens, std::size_t at) : tokens_(tokens), at_(at) {}

  std::size_t at() const { return at_; }

  std::optional<Constant> ternary(int depth) {
    std::optional<Constant> test = binary(0, depth);
    if (!test || test->float_width != 0 || !tokens_[at_].is('?')) return test;
    ++at_;
    const std::optional<Constant> yes = ternary(depth + 1);
    if (!yes || !tokens_[at_].is(':')) return std::nullopt;
    ++at_;
    const std::optional<Constant> no = ternary(depth + 1);
    if (!no) return std::nullopt;
    return test->bits != 0 ? yes : no;
  }

 private:
  struct Operator {
    std::string_view spelling;
    int level;
  };

  /// The binary operator that starts here. A two-character operator is two adjacent tokens.
  const Operator* find_operator() const {
    static constexpr Operator kOperators[] = {
        {"||", 0}, {"&&", 1}, {"<<", 7}, {">>", 7}, {"<=", 6}, {">=", 6}, {"==", 5}, {"!=", 5}, {"|", 2},
        {"^", 3},  {"&", 4},  {"<", 6},  {">", 6},  {"+", 8},  {"-", 8},  {"*", 9},  {"/", 9},  {"%", 9},
    };
    if (tokens_[at_].kind != TokenKind::kPunct) return nullptr;
    for (const Operator& op : kOperators) {
      if (!tokens_[at_].is(op.spelling[0])) continue;
      if (op.spelling.size() == 1) return &op;
      const Token& next = tokens_[at_ + 1];
      if (next.is(op.spelling[1]) && next.text.data() == tokens_[at_].text.data() + 1) return &op;
    }
    return nullptr;
  }

  std::optional<Constant> binary(int level, int depth) {
    std::optional<Constant> left = unary(depth);
    while (left && left->float_width == 0) {
      const Operator* op = find_operator();
      if (op == nullptr || op->level < level) break;
      // `p|q` and `a, b` never start with a constant, so an operator after a constant belongs to it.
      at_ += op->spelling.size();
      const std::optional<Constant> right = binary(op->level + 1, depth + 1);
      if (!right || right->float_width != 0) return std::nullopt;
      const std::optional<std::uint64_t> bits = apply(op->spelling, left->bits, right->bits);
      if (!bits) return std::nullopt;
      left->bits = *bits;
    }
    return left;
  }

  static std::optional<std::uint64_t> apply(std::string_view op, std::uint64_t a, std::uint64_t b) {
    const auto sa = static_cast<std::int64_t>(a);
    const auto sb = static_cast<std::int64_t>(b);
    if (op == "||") return a != 0 || b != 0;
    if (op == "&&") return a != 0 && b != 0;
    if (op == "<<") return b < 64 ? a << b : 0;
    if (op == ">>") return b < 64 ? static_cast<std::uint64_t>(sa >> b) : 0;
    if (op == "<=") return sa <= sb;
    if (op == ">=") return sa >= sb;
    if (op == "==") return a == b;
    if (op == "!=") return a != b;
    if (op == "|") return a | b;
    if (op == "^") return a ^ b;
    if (op == "&") return a & b;
    if (op == "<") return sa < sb;
    if (op == ">") return sa > sb;
    if (op == "+") return a + b;
    if (op == "-") return a - b;
    if (op == "*") return a * b;
    if (b == 0 || (sb == -1 && sa == INT64_MIN)) return std::nullopt;
    return static_cast<std::uint64_t>(op == "/" ? sa / sb : sa % sb);
  }

  std::optional<Constant> unary(int depth) {
    if (depth > kMaxDepth) return std::nullopt;
    const Token& token = tokens_[at_];
    if (token.kind == TokenKind::kNumber) {
      ++at_;
      return read_number(token.text);
    }
    if (token.is('(')) return parenthesized(depth);
    if (!token.is('-') && !token.is('+') && !token.is('~') && !token.is('!')) return std::nullopt;
    ++at_;
    std::optional<Constant> value = unary(depth + 1);
    if (!value || token.is('+')) return value;
    if (value->float_width != 0) {
      if (!token.is('-')) return std::nullopt;
      value->bits ^= std::uint64_t{1} << (value->float_width - 1);
    } else {
      value->bits = token.is('-') ? 0 - value->bits : token.is('~') ? ~value->bits : value->bits == 0;
    }
    return value;
  }

  /// `(expression)` or a cast: `(.u64)`, `(.s64)` change nothing in 64 bits.
  std::optional<Constant> parenthesized(int depth) {
    ++at_;
    if ((tokens_[at_].is(".u64") || tokens_[at_].is(".s64")) && tokens_[at_ + 1].is(')')) {
      at_ += 2;
      return unary(depth + 1);
    }
    std::optional<Constant> value = ternary(depth + 1);
    if (!value || !tokens_[at_].is(')')) return std::nullopt;
    ++at_;
    return value;
  }

  const std::vector<Token>& tokens_;
  std::size_t at_;
};

std::optional<std::uint64_t> digits(std::string_view text, int base) {
  if (!text.empty() && (text.back() == 'U' || text.back() == 'u')) text.remove_suffix(1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<Constant> read_number(std::string_view text) {
  const char marker = text.size() > 2 && text[0] == '0' ? text[1] : '\0';
  std::optional<std::uint64_t> bits;
  std::uint8_t width = 0;
  if (marker == 'x' || marker == 'X') {
    bits = digits(text.substr(2), 16);
  } else if (marker == 'b' || marker == 'B') {
    bits = digits(text.substr(2), 2);
  } else if (marker == 'f' || marker == 'F' || marker == 'd' || marker == 'D') {
    width = marker == 'f' || marker == 'F' ? 32 : 64;
    if (text.size() == 2 + width / 4u) bits = digits(text.substr(2), 16);
  } else if (text.find_first_of(".eE") != text.npos) {
    width = 64;  // decimal floats are doubles in PTX
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size()) bits = std::bit_cast<std::uint64_t>(value);
  } else {
    const bool octal = text.size() > 1 && text[0] == '0' && text[1] != 'U' && text[1] != 'u';
    bits = digits(text, octal ? 8 : 10);
  }
  if (!bits) return std::nullopt;
  return Constant{*bits, width};
}

std::optional<Constant> read_constant(const std::vector<Token>& tokens, std::size_t& at) {
  Reader reader(tokens, at);
  const std::optional<Constant> value = reader.ternary(0);
  if (value) at = reader.at();
  return value;
}

}  // namespace gpuctl::ptx
