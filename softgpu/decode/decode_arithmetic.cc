// Decoding of arithmetic, bitwise and approximate instructions.
#include "softgpu/decode/decoder.h"

namespace gpuctl::softgpu::engine {
namespace {

constexpr std::uint8_t kFtz = 1, kSat = 2, kRelu = 4;  // bits of Instruction::sub of float operations

Type doubled(Type type) {
  switch (type) {
    case Type::kU16:
      return Type::kU32;
    case Type::kS16:
      return Type::kS32;
    case Type::kU32:
      return Type::kU64;
    case Type::kS32:
      return Type::kS64;
    default:
      return Type::kNone;
  }
}

std::uint8_t float_bits(const Selector& selector) {
  return static_cast<std::uint8_t>((selector.ftz ? kFtz : 0) | (selector.sat ? kSat : 0) | (selector.relu ? kRelu : 0));
}

constexpr Round kRounds[] = {Round::kNearest, Round::kZero, Round::kDown, Round::kUp};

}  // namespace

/// Destination of type types[0], sources of types[1...], all in order.
void Decoder::simple(const Selector& selector, const Statement& s, std::initializer_list<Type> types) {
  expect_operands(s, types.size(), types.size());
  OperandRef refs[6];
  const Type* type = types.begin();
  for (std::size_t i = 1; i < types.size(); ++i) refs[i] = source(s.operands[i], type[i]);
  refs[0] = destination(s.operands[0], type[0]);
  Instruction& in = emit(selector);
  for (std::size_t i = 0; i < types.size(); ++i) in.op[i] = refs[i];
  in.sub = float_bits(selector);
}

void Decoder::arithmetic(const Statement& s) {
  Modifiers m(s);
  const Type type = m.take_type();
  require(type != Type::kNone, "needs a type");
  if (is_float(type))
    arithmetic_float(s, m, type);
  else
    arithmetic_integer(s, m, type);
}

void Decoder::arithmetic_integer(const Statement& s, Modifiers& m, Type type) {
  if (m.take("cc")) return carry_chain(s);
  const std::string& name = s.opcode;
  const int part = m.take_one({"lo", "hi", "wide"});
  const bool sat = m.take("sat");
  const bool relu = m.take("relu");
  finish(m);
  if (name == "mul" || name == "mad") {
    require(part >= 0, "needs .lo, .hi or .wide");
    require(!sat || (name == "mad" && part == 1), ".sat is not supported here");
    const bool mul = name == "mul";
    if (part == 2) {
      const Type wide = doubled(type);
      require(wide != Type::kNone, "no wider type");
      if (mul) return simple({.op = Op::kMulWide, .type = type}, s, {wide, type, type});
      return simple({.op = Op::kMadWide, .type = type}, s, {wide, type, type, wide});
    }
    if (mul) return simple({.op = part == 0 ? Op::kMulLo : Op::kMulHi, .type = type}, s, {type, type, type});
    const Op op = sat ? Op::kMadHiSat : part == 0 ? Op::kMadLo : Op::kMadHi;
    return simple({.op = op, .type = type}, s, {type, type, type, type});
  }
  if (name == "mul24" || name == "mad24") {
    require((part == 0 || part == 1) && !sat, "modifiers are not supported");
    if (name == "mul24")
      return simple({.op = part == 0 ? Op::kMul24Lo : Op::kMul24Hi, .type = type}, s, {type, type, type});
    return simple({.op = part == 0 ? Op::kMad24Lo : Op::kMad24Hi, .type = type}, s, {type, type, type, type});
  }
  require(part < 0, "modifiers are not supported");
  struct Row {
    std::string_view name;
    Op op;
    std::size_t sources;
  };
  static constexpr Row kRows[] = {{"add", Op::kAdd, 2}, {"sub", Op::kSub, 2}, {"div", Op::kDiv, 2},
                                  {"rem", Op::kRem, 2}, {"min", Op::kMin, 2}, {"max", Op::kMax, 2},
                                  {"abs", Op::kAbs, 1}, {"neg", Op::kNeg, 1}, {"sad", Op::kSad, 3}};
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    Op op = row.op;
    if (sat) op = op == Op::kAdd ? Op::kAddSat : op == Op::kSub ? Op::kSubSat : Op::kNop;
    if (relu) op = op == Op::kMin ? Op::kMinRelu : op == Op::kMax ? Op::kMaxRelu : Op::kNop;
    require(op != Op::kNop, "modifiers are not supported");
    if (row.sources == 1) return simple({.op = op, .type = type}, s, {type, type});
    if (row.sources == 2) return simple({.op = op, .type = type}, s, {type, type, type});
    return simple({.op = op, .type = type}, s, {type, type, type, type});
  }
  unsupported();
}

void Decoder::carry_chain(const Statement& s) {
  Modifiers m(s);
  const std::string& name = s.opcode;
  const Type type = without_bits(m.take_type());
  require(type == Type::kU32 || type == Type::kS32 || type == Type::kU64 || type == Type::kS64,
          "type is not supported");
  const bool carry_out = m.take("cc"), carry_in = name.back() == 'c';
  const int part = m.take_one({"lo", "hi"});
  finish(m);
  const bool mad = name.starts_with("mad");
  require(mad == (part >= 0), "modifiers are not supported");
  const Op op = mad                       ? (part == 0 ? Op::kMadLoCarry : Op::kMadHiCarry)
                : name.starts_with("sub") ? Op::kSubCarry
                                          : Op::kAddCarry;
  if (mad)
    simple({.op = op, .type = type}, s, {type, type, type, type});
  else
    simple({.op = op, .type = type}, s, {type, type, type});
  code_.back().flags |= static_cast<std::uint16_t>((carry_in ? kCarryIn : 0) | (carry_out ? kCarryOut : 0));
}

void Decoder::arithmetic_float(const Statement& s, Modifiers& m, Type type) {
  const std::string& name = s.opcode;
  Selector selector{.op = Op::kNop, .type = type};
  const int round = m.take_one({"rn", "rz", "rm", "rp"});
  if (round >= 0) selector.round = kRounds[round];
  selector.ftz = m.take("ftz");
  selector.sat = m.take("sat");
  selector.relu = m.take("relu");
  selector.nan = m.take("NaN");
  if (name == "min" || name == "max") {
    selector.xorsign = m.take("xorsign");
    require(m.take("abs") == selector.xorsign, "modifiers are not supported");
  }
  const bool approximate = name == "div" && (m.take("approx") || m.take("full"));
  finish(m);
  struct Row {
    std::string_view name;
    Op op;
    std::size_t sources;
  };
  static constexpr Row kRows[] = {{"add", Op::kAdd, 2}, {"sub", Op::kSub, 2},          {"mul", Op::kMul, 2},
                                  {"div", Op::kDiv, 2}, {"fma", Op::kFma, 3},          {"mad", Op::kFma, 3},
                                  {"min", Op::kMin, 2}, {"max", Op::kMax, 2},          {"abs", Op::kAbs, 1},
                                  {"neg", Op::kNeg, 1}, {"copysign", Op::kCopysign, 2}};
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    selector.op = row.op;
    require(name != "div" || round >= 0 || approximate, "needs a rounding mode");
    if (row.sources == 1) return simple(selector, s, {type, type});
    if (row.sources == 2) return simple(selector, s, {type, type, type});
    return simple(selector, s, {type, type, type, type});
  }
  unsupported();
}

void Decoder::approximate(const Statement& s) {
  Modifiers m(s);
  const std::string& name = s.opcode;
  Selector selector{.op = Op::kNop, .type = m.take_type()};
  selector.approx = m.take("approx");
  selector.ftz = m.take("ftz");
  const int round = m.take_one({"rn", "rz", "rm", "rp"});
  if (round >= 0) selector.round = kRounds[round];
  finish(m);
  struct Row {
    std::string_view name;
    Op op;
  };
  static constexpr Row kRows[] = {{"rcp", Op::kRcp}, {"sqrt", Op::kSqrt}, {"rsqrt", Op::kRsqrt}, {"sin", Op::kSin},
                                  {"cos", Op::kCos}, {"lg2", Op::kLg2},   {"ex2", Op::kEx2},     {"tanh", Op::kTanh}};
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    selector.op = row.op;
    require(selector.approx != (round >= 0), "needs .approx or a rounding mode");
    return simple(selector, s, {selector.type, selector.type});
  }
  unsupported();
}

void Decoder::logic(const Statement& s) {
  Modifiers m(s);
  const Type type = m.take_type();
  finish(m);
  const std::string& name = s.opcode;
  if (name == "not") return simple({.op = Op::kNot, .type = type}, s, {type, type});
  if (name == "cnot") return simple({.op = Op::kCnot, .type = type}, s, {type, type});
  simple({.op = name == "and" ? Op::kAnd : name == "or" ? Op::kOr : Op::kXor, .type = type}, s, {type, type, type});
}

void Decoder::shift(const Statement& s) {
  Modifiers m(s);
  const Type type = m.take_type();
  finish(m);
  simple({.op = s.opcode == "shl" ? Op::kShl : Op::kShr, .type = type}, s, {type, type, Type::kU32});
}

void Decoder::funnel_shift(const Statement& s) {
  Modifiers m(s);
  const Type type = m.take_type();
  const int direction = m.take_one({"l", "r"}), mode = m.take_one({"wrap", "clamp"});
  finish(m);
  require(type == Type::kB32 && direction >= 0 && mode >= 0, "modifiers are not supported");
  const Op op = direction == 0 ? (mode == 0 ? Op::kShfLeftWrap : Op::kShfLeftClamp)
                               : (mode == 0 ? Op::kShfRightWrap : Op::kShfRightClamp);
  simple({.op = op, .type = type}, s, {type, type, type, Type::kU32});
}

void Decoder::lop3(const Statement& s) {
  Modifiers m(s);
  const Type type = m.take_type();
  finish(m);
  expect_operands(s, 5, 5);
  require(type == Type::kB32 && s.operands[4].kind == Operand::Kind::kImmediate, "needs .b32 and an immediate table");
  Statement head = s;
  head.operands.pop_back();
  simple({.op = Op::kLop3, .type = type}, head, {type, type, type, type});
  code_.back().imm = static_cast<std::int64_t>(s.operands[4].bits & 0xff);
}

void Decoder::prmt(const Statement& s) {
  Modifiers m(s);
  const Type type = m.take_type();
  const int mode = m.take_one({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  finish(m);
  require(type == Type::kB32, "type is not supported");
  simple({.op = mode < 0 ? Op::kPrmt : Op::kPrmtMode, .type = type}, s, {type, type, type, type});
  if (mode >= 0) code_.back().sub = static_cast<std::uint8_t>(mode);
}

void Decoder::bit_field(const Statement& s) {
  Modifiers m(s);
  const std::string& name = s.opcode;
  const Type type = m.take_type();
  constexpr Type kU = Type::kU32;
  if (name == "bmsk" || name == "szext") {
    const int mode = m.take_one({"clamp", "wrap"});
    finish(m);
    require(mode >= 0 && size_of(type) == 4, "modifiers are not supported");
    if (name == "bmsk")
      return simple({.op = mode == 0 ? Op::kBmskClamp : Op::kBmskWrap, .type = type}, s, {kU, kU, kU});
    return simple({.op = mode == 0 ? Op::kSzextClamp : Op::kSzextWrap, .type = type}, s, {type, type, kU});
  }
  finish(m);
  if (name == "bfe") return simple({.op = Op::kBfe, .type = type}, s, {type, type, kU, kU});
  if (name == "fns") return simple({.op = Op::kFns, .type = type}, s, {kU, kU, kU, Type::kS32});
  simple({.op = Op::kBfi, .type = type}, s, {type, type, type, kU, kU});
}

void Decoder::bit_count(const Statement& s) {
  Modifiers m(s);
  const std::string& name = s.opcode;
  const Type type = m.take_type();
  const bool shift = m.take("shiftamt");
  finish(m);
  if (name == "brev") return simple({.op = Op::kBrev, .type = type}, s, {type, type});
  const Op op = name == "popc" ? Op::kPopc : name == "clz" ? Op::kClz : shift ? Op::kBfindShift : Op::kBfind;
  simple({.op = op, .type = type}, s, {Type::kU32, type});
}

void Decoder::dot_product(const Statement& s) {
  Modifiers m(s);
  const int half = m.take_one({"lo", "hi"});
  const Type a = m.take_type(), b = m.take_type();
  finish(m);
  require(size_of(a) == 4 && size_of(b) == 4 && (s.opcode == "dp2a") == (half >= 0), "modifiers are not supported");
  const Op op = half < 0 ? Op::kDp4a : half == 0 ? Op::kDp2aLo : Op::kDp2aHi;
  simple({.op = op, .type = a, .from = b}, s, {Type::kU32, Type::kU32, Type::kU32, Type::kU32});
}

}  // namespace gpuctl::softgpu::engine
