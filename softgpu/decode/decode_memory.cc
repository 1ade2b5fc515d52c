// Decoding of moves, memory accesses and address conversions.
#include "softgpu/decode/decoder.h"

namespace gpuctl::softgpu::engine {

void Decoder::mov(const Statement& s) {
  Modifiers m(s);
  const Type type = m.take_type();
  const int width = m.take_one({"v2", "v4"});
  finish(m);
  expect_operands(s, 2, 2);
  if (width >= 0) {  // a vector register to or from another, or from %tid
    const std::size_t count = width == 0 ? 2 : 4;
    const auto to = elements(s.operands[0], count), from = elements(s.operands[1], count);
    for (std::size_t k = 0; k < count; ++k) emit_copy(Op::kMov, type, destination(to[k], type), source(from[k], type));
    return;
  }
  const bool pack = s.operands[1].kind == Operand::Kind::kVector, unpack = s.operands[0].kind == Operand::Kind::kVector;
  if (!pack && !unpack) return simple({.op = Op::kMov, .type = type}, s, {type, type});
  require(pack != unpack && size_of(type) >= 4, "operands are not supported");
  const Operand& vector = s.operands[pack ? 1 : 0];
  const int count = static_cast<int>(vector.items.size());
  require(count == 2 || count == 4, "vectors have 2 or 4 elements");
  const Type element = size_of(type) / count >= 4 ? Type::kB32 : size_of(type) / count == 2 ? Type::kB16 : Type::kB8;
  OperandRef refs[4], whole;
  if (pack) {
    for (int k = 0; k < count; ++k) refs[k] = source(vector.items[k], element);
    whole = destination(s.operands[0], type);
  } else {
    whole = source(s.operands[1], type);
    for (int k = 0; k < count; ++k) refs[k] = destination(vector.items[k], element);
  }
  Instruction& in = emit(Selector{.op = pack ? Op::kPack : Op::kUnpack, .type = type, .count = count});
  for (int k = 0; k < count; ++k) in.op[pack ? k + 1 : k] = refs[k];
  in.op[pack ? 0 : 4] = whole;
}

namespace {

constexpr std::string_view kSpaces[] = {"global", "shared", "shared::cta",  "local",
                                        "const",  "param",  "param::entry", "param::func"};

std::string_view take_space(Modifiers& m) {
  for (const std::string_view space : kSpaces)
    if (m.take(space)) return space;
  return {};
}

/// Hints that change nothing here.
void take_cache_hints(Modifiers& m) {
  m.take_one({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
  m.take_starting("L1::");
  m.take_starting("L2::");
  m.take("unified");
}

}  // namespace

void Decoder::load_store(const Statement& s) {
  Modifiers m(s);
  const bool load = s.opcode != "st";
  Selector selector{.op = load ? Op::kLoad : Op::kStore, .type = m.take_type()};
  if (!m.take("weak"))
    selector.strong = m.take("mmio") | (m.take_one({"volatile", "relaxed", "acquire", "release"}) >= 0);
  m.take_one({"cta", "cluster", "gpu", "sys"});
  const std::string_view space = take_space(m);
  m.take("nc");
  take_cache_hints(m);
  const int vector = m.take_one({"v2", "v4"});
  finish(m);
  require(selector.type != Type::kNone && selector.type != Type::kPred, "type is not supported");
  selector.count = vector < 0 ? 1 : vector == 0 ? 2 : 4;
  expect_operands(s, 2, 3);  // the third is a cache policy
  const Operand& value = s.operands[load ? 0 : 1];
  const std::vector<Operand> values =
      vector < 0 ? std::vector<Operand>{value} : elements(value, static_cast<std::size_t>(selector.count));

  Instruction parts;
  address(s.operands[load ? 1 : 0], parts, 4, space);
  const unsigned bytes = size_of(selector.type) * static_cast<unsigned>(selector.count);
  if (parts.space == Space::kFrame || parts.space == Space::kParam) {
    require(parts.imm % bytes == 0, "misaligned");
    require(parts.imm >= variable_begin_ && parts.imm + bytes <= variable_end_, "outside of its variable");
    require(load || parts.space == Space::kFrame, "kernel parameters cannot be written");
  }
  selector.immediate = load && parts.space == Space::kParam;
  for (int k = 0; k < selector.count; ++k) {
    const Operand& element = values[static_cast<std::size_t>(k)];
    parts.op[k] = load ? destination(element, selector.type) : source(element, selector.type);
  }
  Instruction& in = emit(selector);
  for (int k = 0; k < 5; ++k) in.op[k] = parts.op[k];
  in.imm = parts.imm;
  in.space = parts.space;
  in.flags |= parts.flags;
  if (load && selector.strong) in.flags |= kPolls;
}

void Decoder::atom(const Statement& s) {
  Modifiers m(s);
  const bool red = s.opcode == "red";
  Selector selector{.op = Op::kAtom};
  m.take_one({"relaxed", "acquire", "release", "acq_rel"});
  m.take_one({"cta", "cluster", "gpu", "sys"});
  const std::string_view space = take_space(m);
  constexpr AtomOp kOps[] = {AtomOp::kAdd, AtomOp::kExch, AtomOp::kCas, AtomOp::kMin, AtomOp::kMax,
                             AtomOp::kInc, AtomOp::kDec,  AtomOp::kAnd, AtomOp::kOr,  AtomOp::kXor};
  const int op = m.take_one({"add", "exch", "cas", "min", "max", "inc", "dec", "and", "or", "xor"});
  selector.type = m.take_type();
  m.take("noftz");
  take_cache_hints(m);
  finish(m);
  require(op >= 0, "operation is not supported");
  selector.atom = kOps[op];
  const std::size_t sources = selector.atom == AtomOp::kCas ? 2 : 1, first = red ? 1 : 2;
  expect_operands(s, first + sources, first + sources + 1);  // one more: a cache policy
  Instruction parts;
  address(s.operands[first - 1], parts, 4, space);
  require(parts.space == Space::kGlobal || parts.space == Space::kShared, "not in that state space");
  selector.immediate = parts.space == Space::kShared;
  for (std::size_t k = 0; k < sources; ++k) parts.op[1 + k] = source(s.operands[first + k], selector.type);
  if (!red && s.operands[0].kind != Operand::Kind::kSink) parts.op[0] = destination(s.operands[0], selector.type);
  Instruction& in = emit(selector);
  for (int k = 0; k < 5; ++k) in.op[k] = parts.op[k];
  in.imm = parts.imm;
  in.space = parts.space;
  in.flags |= static_cast<std::uint16_t>(parts.flags | (red ? 0 : kPolls));
}

void Decoder::cvta(const Statement& s) {
  Modifiers m(s);
  const bool to = m.take("to");
  const Type type = m.take_type();
  const std::string_view space = take_space(m);
  finish(m);
  require(type == Type::kU64 && !space.empty(), "modifiers are not supported");
  Op op = Op::kMov;
  if (space.starts_with("shared")) op = to ? Op::kToShared : Op::kFromShared;
  if (space == "local") op = to ? Op::kToLocal : Op::kFromLocal;
  simple({.op = op, .type = type}, s, {type, type});
}

void Decoder::isspacep(const Statement& s) {
  Modifiers m(s);
  const std::string_view space = take_space(m);
  finish(m);
  expect_operands(s, 2, 2);
  if (space == "const") {
    // Constants are ordinary global memory here.
    const OperandRef p = predicate_destination(&s.operands[0]);
    return emit_copy(Op::kMov, Type::kPred, p, pool_.predicate(false));
  }
  const Op op = space == "global"             ? Op::kIsGlobal
                : space == "local"            ? Op::kIsLocal
                : space.starts_with("shared") ? Op::kIsShared
                                              : Op::kIsParam;
  require(!space.empty() && space != "param::func", "state space is not supported");
  simple({.op = op, .type = Type::kB64}, s, {Type::kPred, Type::kU64});
}

void Decoder::fence(const Statement& s) {
  for (const std::string& word : s.modifiers) require(word.find("mbarrier") == std::string::npos, "not supported");
  emit(Selector{.op = Op::kFence});
}

/// Hints and notifications without an effect on what the program computes.
void Decoder::ignore(const Statement&) {
  emit(Selector{.op = Op::kNop});
}

void Decoder::create_policy(const Statement& s) {
  expect_operands(s, 1, 4);
  const OperandRef to = destination(s.operands[0], Type::kB64);
  emit_copy(Op::kMov, Type::kB64, to, pool_.word64(0));
}

void Decoder::copy_async(const Statement& s) {
  Modifiers m(s);
  require(m.take("async"), "not supported");
  if (m.take("commit_group") || m.take("wait_group") || m.take("wait_all")) {
    finish(m);
    return ignore(s);
  }
  m.take_one({"ca", "cg"});
  require(m.take_one({"shared", "shared::cta"}) >= 0 && m.take("global"), "state spaces are not supported");
  m.take_starting("L2::");
  finish(m);
  expect_operands(s, 3, 5);
  require(s.operands[2].kind == Operand::Kind::kImmediate, "the size must be a constant");
  const int bytes = static_cast<int>(s.operands[2].bits);
  Instruction to, from;
  address(s.operands[0], to, 0, "shared");
  address(s.operands[1], from, 1, "global");
  require((from.flags & kAddress32) == 0, "the global address needs 64 bits");
  require(from.imm == static_cast<std::int32_t>(from.imm), "the offset is too large");
  OperandRef size = pool_.word32(static_cast<std::uint32_t>(bytes));
  if (s.operands.size() > 3 &&
      (s.operands[3].kind == Operand::Kind::kImmediate || s.operands[3].kind == Operand::Kind::kRegister)) {
    const Name* name = s.operands[3].kind == Operand::Kind::kRegister ? find(s.operands[3].text) : nullptr;
    require(name == nullptr || name->type != Type::kPred, "a predicate operand is not supported");
    // A 64-bit operand in fourth place is a cache policy.
    if (name == nullptr || name->size != 8) size = source(s.operands[3], Type::kU32);
  }
  Instruction& in = emit(Selector{.op = Op::kCopyAsync, .count = bytes});
  in.op[0] = to.op[0], in.op[1] = from.op[1], in.op[2] = size;
  in.imm = to.imm;
  in.target = static_cast<std::uint32_t>(static_cast<std::int32_t>(from.imm));
  in.flags |= to.flags;
}

}  // namespace gpuctl::softgpu::engine
