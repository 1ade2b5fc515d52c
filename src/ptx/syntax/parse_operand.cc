#include "ptx/syntax/parse_operand.h"

#include <utility>

#include "ptx/syntax/opcode.h"

namespace gpuctl::ptx {
namespace {

Operand sequence(TokenCursor& in, Operand::Kind kind, char close, int depth) {
  Operand result;
  result.kind = kind;
  in.skip(1);
  if (in.accept(close)) return result;
  do {
    result.items.push_back(parse_operand(in, depth + 1));
  } while (in.accept(','));
  in.expect(close);
  return result;
}

Operand constant_operand(TokenCursor& in, const Constant& value, std::size_t start, int depth) {
  // A call's one-argument list `(4)` looks like a constant in parentheses; only calls have lists, so it is one.
  std::string text = in.text_since(start);
  if (text.starts_with('(') && text.ends_with(')')) {
    in.go_back(start);
    return sequence(in, Operand::Kind::kList, ')', depth);
  }
  Operand result;
  result.kind = value.float_width != 0 ? Operand::Kind::kFloatImmediate : Operand::Kind::kImmediate;
  result.width = value.float_width;
  result.bits = value.bits;
  result.text = std::move(text);
  return result;
}

/// `+4`, `-4`, `+-4` or `[4]` after a name.
void offset(TokenCursor& in, Operand& result) {
  const std::size_t start = in.place();
  const bool index = in.peek().is('[');
  if (!index && !in.peek().is('+') && !in.peek().is('-')) return;
  if (index) in.skip(1);
  result.offset = static_cast<std::int64_t>(in.take_integer("an offset"));
  if (index) in.expect(']');
  result.offset_text = in.text_since(start);
}

Operand name_operand(TokenCursor& in) {
  Operand result;
  result.text = in.next();
  if (result.text == "_") {
    result.text.clear();
    return result;
  }
  if (in.registers.contains(result.text)) {
    result.kind = Operand::Kind::kRegister;
  } else if (result.text[0] == '%' || is_special_register(result.text)) {
    result.kind = Operand::Kind::kSpecial;
  } else {
    result.kind = Operand::Kind::kSymbol;
  }
  if (in.peek().kind == TokenKind::kDotWord) {
    result.component = in.next().substr(1);
    constexpr std::string_view kColours = "rgba";  // other names of the same
    const std::size_t colour = result.component.size() == 1 ? kColours.find(result.component) : kColours.npos;
    if (colour != kColours.npos) result.component = "xyzw"[colour];
  } else if (result.kind == Operand::Kind::kSymbol || (result.kind == Operand::Kind::kRegister && !in.peek().is('['))) {
    offset(in, result);
  }
  return result;
}

Operand address(TokenCursor& in, int depth) {
  Operand result;
  result.kind = Operand::Kind::kAddress;
  in.expect('[');
  Operand base = parse_operand(in, depth + 1);
  if (base.kind == Operand::Kind::kSymbol || !base.offset_text.empty()) {
    result.offset = std::exchange(base.offset, 0);
    result.offset_text = std::exchange(base.offset_text, {});
  } else if (base.kind == Operand::Kind::kRegister || base.kind == Operand::Kind::kSpecial) {
    offset(in, result);
  }
  result.items.push_back(std::move(base));
  while (in.accept(',')) result.items.push_back(parse_operand(in, depth + 1));
  in.expect(']');
  return result;
}

Operand simple_operand(TokenCursor& in, int depth) {
  const Token& token = in.peek();
  if (token.is('[')) return address(in, depth);
  if (token.is('{')) return sequence(in, Operand::Kind::kVector, '}', depth);
  if (token.kind == TokenKind::kIdentifier) return name_operand(in);
  if (token.kind == TokenKind::kString) {
    Operand result;
    result.kind = Operand::Kind::kString;
    result.text = in.next();
    return result;
  }
  const bool sign = token.is('!') || token.is('-');
  if (sign && in.peek(1).kind == TokenKind::kIdentifier && !in.peek(1).is("WARP_SZ")) {
    Operand result;
    result.kind = Operand::Kind::kNegated;
    result.text = in.next();
    result.items.push_back(name_operand(in));
    return result;
  }
  const std::size_t start = in.place();
  if (const std::optional<Constant> value = in.accept_constant()) return constant_operand(in, *value, start, depth);
  if (token.is('(')) return sequence(in, Operand::Kind::kList, ')', depth);
  in.expected("an operand");
}

}  // namespace

Operand parse_operand(TokenCursor& in, int depth) {
  if (depth > kMaxNesting) in.mistake(in.peek(), "nested too deeply");
  Operand first = simple_operand(in, depth);
  if (!in.accept('|')) return first;
  Operand pair;
  pair.kind = Operand::Kind::kPredicatePair;
  pair.items.push_back(std::move(first));
  pair.items.push_back(simple_operand(in, depth));
  return pair;
}

}  // namespace gpuctl::ptx
