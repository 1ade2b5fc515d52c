// Decoding of comparisons, selections and conversions.
#include "softgpu/decode/decoder.h"

namespace gpuctl::softgpu::engine {

/// Decodes the parts that setp and set share: `.cmp{.bool}{.ftz}` and the sources, from operand 1 on.
void Decoder::comparison(const Statement& s, Modifiers& m, Instruction& in, Selector& selector) {
  // In the order of Compare; lo, ls, hi, hs are the unsigned names.
  const int combine = m.take_one({"and", "or", "xor"});
  const int compare =
      m.take_one({"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"});
  const int unsigned_compare = compare >= 0 ? -1 : m.take_one({"lo", "ls", "hi", "hs"});
  selector.ftz = m.take("ftz");
  finish(m);
  require(compare >= 0 || unsigned_compare >= 0, "needs a comparison");
  selector.compare = static_cast<Compare>(compare >= 0 ? compare : static_cast<int>(Compare::kLt) + unsigned_compare);
  if (combine >= 0) in.combine = static_cast<Combine>(combine + 1);
  expect_operands(s, combine >= 0 ? 4 : 3, combine >= 0 ? 4 : 3);
  in.op[1] = source(s.operands[1], selector.type);
  in.op[2] = source(s.operands[2], selector.type);
  if (combine >= 0) in.op[3] = predicate(s.operands[3]);
}

void Decoder::setp(const Statement& s) {
  Modifiers m(s);
  Selector selector{.op = Op::kSetp, .type = m.take_type()};
  Instruction parts;
  comparison(s, m, parts, selector);
  parts.op[0] = predicate_destination(paired(s.operands[0], 0));
  parts.op[4] = predicate_destination(paired(s.operands[0], 1));
  Instruction& in = emit(selector);
  for (int i = 0; i < 5; ++i) in.op[i] = parts.op[i];
  in.combine = parts.combine;
}

void Decoder::set(const Statement& s) {
  Modifiers m(s);
  const Type to = m.take_type();
  Selector selector{.op = Op::kSet, .type = m.take_type()};
  Instruction parts;
  comparison(s, m, parts, selector);
  switch (to) {
    case Type::kF32:
      parts.imm = 0x3f800000;
      break;
    case Type::kF16:
      parts.imm = 0x3c00;
      break;
    case Type::kBf16:
      parts.imm = 0x3f80;
      break;
    case Type::kF16x2:
      parts.imm = 0x3c00;
      break;
    case Type::kBf16x2:
      parts.imm = 0x3f80;
      break;
    default:
      parts.imm = 0xffffffff;
      require(size_of(to) == 4 || size_of(to) == 2, "type is not supported");
  }
  parts.op[0] = destination(s.operands[0], to);
  Instruction& in = emit(selector);
  for (int i = 0; i < 4; ++i) in.op[i] = parts.op[i];
  in.combine = parts.combine;
  in.imm = parts.imm;
}

void Decoder::selp(const Statement& s) {
  Modifiers m(s);
  const Type type = m.take_type();
  finish(m);
  simple({.op = Op::kSelp, .type = type}, s, {type, type, type, Type::kPred});
}

void Decoder::slct(const Statement& s) {
  Modifiers m(s);
  const Type type = m.take_type(), by = m.take_type();
  const bool ftz = m.take("ftz");
  finish(m);
  require(by == Type::kS32 || by == Type::kF32, "type is not supported");
  simple({.op = Op::kSlct, .type = type, .from = by, .ftz = ftz}, s, {type, type, type, by});
}

void Decoder::testp(const Statement& s) {
  Modifiers m(s);
  const Type type = m.take_type();
  const int test = m.take_one({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  finish(m);
  require(test >= 0, "needs a test");
  simple({.op = Op::kTestp, .type = type}, s, {Type::kPred, type});
  code_.back().sub = static_cast<std::uint8_t>(test);
}

void Decoder::cvt(const Statement& s) {
  constexpr std::uint8_t kFtz = 1, kSat = 2, kRelu = 4, kIntegral = 8;
  Modifiers m(s);
  const Type to = m.take_type(), from = m.take_type();
  require(to != Type::kNone && from != Type::kNone, "types are not supported");
  Selector selector{.op = Op::kCvt, .type = to, .from = from};
  constexpr Round kRounds[] = {Round::kNearest, Round::kZero, Round::kDown, Round::kUp,  Round::kNearest,
                               Round::kZero,    Round::kDown, Round::kUp,   Round::kAway};
  const int round = m.take_one({"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "rna"});
  if (round >= 0) selector.round = kRounds[round];
  const bool integral = round >= 4 && round < 8;
  std::uint8_t sub = 0;
  if (m.take("ftz")) sub |= kFtz;
  if (m.take("sat")) sub |= kSat;
  if (m.take("relu")) sub |= kRelu;
  if (integral && is_float(to)) sub |= kIntegral;
  finish(m);
  const bool to_float = is_float(to), from_float = is_float(from);
  require(round != 8 || to == Type::kBf16, ".rna is not supported here");
  if (from_float && !to_float) require(integral, "needs an integer rounding mode");
  if (!from_float && to_float) require(round >= 0 && round < 4, "needs a rounding mode");
  if (to_float && size_of(to) == 4 && to != Type::kF32) {  // two f32 into a pair
    require(from == Type::kF32 && !integral && round >= 0, "types are not supported");
    selector.op = Op::kCvtPack;
    simple(selector, s, {to, from, from});
  } else {
    require(size_of(to) != 0 && size_of(from) != 0 && from != Type::kF16x2 && from != Type::kBf16x2,
            "types are not supported");
    simple(selector, s, {to, from});
  }
  code_.back().sub = sub;
}

}  // namespace gpuctl::softgpu::engine
