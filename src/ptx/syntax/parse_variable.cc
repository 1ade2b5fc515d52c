#include "ptx/syntax/parse_variable.h"

#include <algorithm>
#include <iterator>

namespace gpuctl::ptx {
namespace {

constexpr std::uint64_t kMaxRange = 1u << 24;  // registers of one `%r<n>`; compilers use far fewer

bool at_initializer_end(const TokenCursor& in) {
  return in.peek().is(',') || in.peek().is('}') || in.peek().is(';');
}

void inner_symbol(TokenCursor& in, Initializer& result) {
  if (in.peek().is("generic") && in.peek(1).is('(')) {
    result.generic = true;
    in.skip(2);
  }
  if (in.peek().kind != TokenKind::kIdentifier) {
    result.kind = Initializer::Kind::kOther;
    return;
  }
  result.symbol = in.next();
  if (result.generic && !in.accept(')')) result.kind = Initializer::Kind::kOther;
  if (in.peek().is('+') || in.peek().is('-')) {
    const std::optional<Constant> offset = in.accept_constant();
    if (offset) result.offset = static_cast<std::int64_t>(offset->bits);
  }
}

/// `s`, `s+4`, `generic(s)+4`, `0xff00(s)`, `"text"`; anything else (`addr_mode_0 = wrap`) is kept unread.
void symbol_initializer(TokenCursor& in, Initializer& result) {
  const std::size_t start = in.place();
  if (in.peek().kind == TokenKind::kString) {
    result.kind = Initializer::Kind::kString;
    in.skip(1);
  } else if (in.peek().kind == TokenKind::kNumber && in.peek(1).is('(')) {
    if (const std::optional<Constant> mask = read_number(in.peek().text)) result.mask = mask->bits;
    in.skip(2);
    result.kind = Initializer::Kind::kSymbol;
    inner_symbol(in, result);
    if (!in.accept(')')) result.kind = Initializer::Kind::kOther;
  } else {
    result.kind = Initializer::Kind::kSymbol;
    inner_symbol(in, result);
  }
  if (result.kind != Initializer::Kind::kOther && at_initializer_end(in)) return;
  result.kind = Initializer::Kind::kOther;
  in.go_back(start);
  while (!at_initializer_end(in)) {
    if (in.peek().is('(')) {
      std::vector<std::string> group;
      in.take_group(group);
    } else {
      in.next();
    }
  }
}

Initializer initializer(TokenCursor& in, int depth) {
  if (depth > kMaxNesting) in.mistake(in.peek(), "nested too deeply");
  Initializer result;
  if (in.accept('{')) {
    result.kind = Initializer::Kind::kList;
    if (in.accept('}')) return result;
    do {
      result.items.push_back(initializer(in, depth + 1));
    } while (in.accept(','));
    in.expect('}');
    return result;
  }
  const std::size_t start = in.place();
  if (const std::optional<Constant> value = in.accept_constant(); value && at_initializer_end(in)) {
    result.kind = value->float_width != 0 ? Initializer::Kind::kFloat : Initializer::Kind::kNumber;
    result.bits = value->bits;
    result.width = value->float_width;
  } else {
    in.go_back(start);
    symbol_initializer(in, result);
  }
  result.tokens = in.tokens_since(start);
  return result;
}

Declarator declarator(TokenCursor& in, const Variable& variable) {
  Declarator result;
  result.name = in.take(TokenKind::kIdentifier, "a name");
  const std::size_t shape = in.place();
  if (in.accept('<')) {
    const Token& token = in.peek();  // not an expression: the `>` that follows would read as an operator
    const std::optional<Constant> count = read_number(in.take(TokenKind::kNumber, "a count"));
    if (!count || count->float_width != 0 || count->bits > kMaxRange) in.mistake(token, "register count out of range");
    result.range = static_cast<std::uint32_t>(count->bits);
    in.expect('>');
  }
  while (in.accept('[')) {
    result.dims.emplace_back();
    if (!in.peek().is(']')) result.dims.back() = in.take_integer("a size");
    in.expect(']');
  }
  result.shape_text = in.text_since(shape);
  if (in.accept('=')) result.init = initializer(in, 0);
  if (variable.space == "reg") {
    in.registers.declare(result.name, result.range);
  } else {
    in.registers.hide(result.name);
  }
  return result;
}

}  // namespace

bool is_space(const Token& token) {
  static constexpr std::string_view kSpaces[] = {".reg",   ".sreg",   ".const", ".global",     ".local",
                                                 ".param", ".shared", ".tex",   ".shared::cta"};
  return std::find(std::begin(kSpaces), std::end(kSpaces), token.text) != std::end(kSpaces);
}

Variable parse_variable(TokenCursor& in, Where where) {
  Variable result;
  result.line = in.peek().line;
  while (in.peek().kind == TokenKind::kDotWord) {
    const bool number = in.peek().is(".align");
    result.specifiers.push_back(in.next());
    if (number) result.specifiers.push_back(in.take(TokenKind::kNumber, "an alignment"));
    if (in.peek().is('(')) in.take_group(result.specifiers);
  }
  decode_specifiers(result);
  do {
    result.names.push_back(declarator(in, result));
  } while (where == Where::kStatement && in.accept(','));
  if (where == Where::kStatement) in.expect(';');
  return result;
}

}  // namespace gpuctl::ptx
