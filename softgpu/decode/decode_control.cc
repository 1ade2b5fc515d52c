// Decoding of control flow, barriers and operations among the lanes of a warp.
#include "softgpu/decode/decoder.h"

namespace gpuctl::softgpu::engine {

void Decoder::branch(const Statement& s) {
  Modifiers m(s);
  m.take("uni");
  finish(m);
  expect_operands(s, 1, 1);
  const std::uint32_t target = label(s.operands[0]);
  Instruction& in = emit(Handler{});
  in.kind = Kind::kBranch;
  in.target = target;
}

void Decoder::branch_indexed(const Statement& s) {
  Modifiers m(s);
  require(m.take("idx"), "not supported");
  m.take("uni");
  finish(m);
  expect_operands(s, 2, 2);
  const Name* name = find(s.operands[1].text);
  require(name != nullptr && name->kind == Name::Kind::kBranchTargets, "needs a .branchtargets label");
  std::vector<std::uint32_t> targets;
  for (std::size_t i = 1; i < name->tokens->size(); ++i) {
    const std::string& token = (*name->tokens)[i];
    if (token == "," || token == ";") continue;
    Operand operand;
    operand.kind = Operand::Kind::kSymbol;
    operand.text = token;
    targets.push_back(label(operand));
  }
  const OperandRef index = source(s.operands[0], Type::kU32);
  Instruction& in = emit(Handler{});
  in.kind = Kind::kBranchTable;
  in.op[0] = index;
  in.target = static_cast<std::uint32_t>(program_.branch_tables.size());
  tables_.push_back(in.target);
  program_.branch_tables.push_back(std::move(targets));
}

void Decoder::leave(const Statement& s) {
  Modifiers m(s);
  m.take("uni");
  finish(m);
  emit(Handler{}).kind = s.opcode == "exit" || function_.entry ? Kind::kExit : Kind::kReturn;
}

/// Decodes `call (results), target, (arguments), prototype;`. All parts but the target are optional.
void Decoder::call(const Statement& s) {
  Modifiers m(s);
  m.take("uni");
  finish(m);
  std::size_t at = 0;
  const auto list = [&]() -> const Operand* {
    return at < s.operands.size() && s.operands[at].kind == Operand::Kind::kList ? &s.operands[at++] : nullptr;
  };
  const Operand* results = list();
  require(at < s.operands.size(), "needs a target");
  const Operand& target = s.operands[at++];
  const Operand* values = list();
  CallSite site;
  const std::vector<Place>* formals = nullptr;
  const std::vector<Place>* formal_results = nullptr;
  if (target.kind == Operand::Kind::kSymbol) {
    Function* callee = symbols_.function(target.text);
    if (callee != nullptr && callee->defined) {
      site.callee = callee;
      function_.callees.push_back(callee);
      formals = &callee->parameters;
      formal_results = &callee->results;
    } else if (target.text == "vprintf") {
      site.builtin = kVprintf;
    } else if (target.text == "__assertfail") {
      site.builtin = kAssertFail;
    } else {
      reject("calls " + target.text + ", which this module does not define");
    }
  } else {
    site.pointer = source(target, Type::kU64);
    function_.calls_pointer = true;
  }
  if (values != nullptr) arguments(*values, site.arguments, formals, false);
  if (results != nullptr) arguments(*results, site.results, formal_results, true);
  Instruction& in = emit(Handler{});
  in.kind = Kind::kCall;
  in.target = static_cast<std::uint32_t>(program_.call_sites.size());
  program_.call_sites.push_back(std::move(site));
}

void Decoder::arguments(const Operand& list, std::vector<Place>& places, const std::vector<Place>* formals,
                        bool results) {
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const Operand& item = list.items[i];
    Place place;
    const Name* name = item.kind == Operand::Kind::kSymbol ? find(item.text) : nullptr;
    if (name != nullptr && name->kind == Name::Kind::kFrameParam) {
      place.offset = name->offset;
      place.size = name->size;
    } else {
      // Old style: registers and constants are arguments. The callee's declaration says how wide a constant is.
      const Name* reg = item.kind == Operand::Kind::kRegister ? find(item.text) : nullptr;
      const std::uint32_t wanted = formals != nullptr && i < formals->size() ? (*formals)[i].size : 4;
      const Type type = reg != nullptr ? reg->type : wanted == 8 ? Type::kB64 : wanted == 0 ? Type::kPred : Type::kB32;
      require(!results || reg != nullptr, "a result needs a register or parameter");
      place.in_register = true;
      place.reg = reg != nullptr ? reg->offset : source(item, type);
      place.size = size_of(type);
    }
    places.push_back(place);
  }
}

void Decoder::trap(const Statement& s) {
  Modifiers m(s);
  finish(m);
  emit(Handler{}).kind = Kind::kTrap;
}

void Decoder::nanosleep(const Statement& s) {
  Modifiers m(s);
  require(m.take_type() == Type::kU32, "needs .u32");
  finish(m);
  expect_operands(s, 1, 1);
  const OperandRef time = source(s.operands[0], Type::kU32);
  Instruction& in = emit(Handler{});
  in.kind = Kind::kSleep;
  in.op[1] = time;
}

/// bar{.cta}.sync|arrive|red and barrier{.cta}...{.aligned}; bar.warp.sync.
void Decoder::barrier(const Statement& s) {
  Modifiers m(s);
  if (m.take("warp")) return warp_sync(s);
  m.take("cta");
  m.take("aligned");
  const int op = m.take_one({"sync", "arrive", "red"});
  require(op >= 0, "not supported");
  Instruction parts;
  parts.sub = static_cast<std::uint8_t>(op == 0 ? BarrierOp::kSync : BarrierOp::kArrive);
  std::size_t first = 0, sources = s.operands.size();
  if (op == 2) {
    const int kind = m.take_one({"popc", "and", "or"});
    require(kind >= 0, "needs .popc, .and or .or");
    const Type type = m.take_type();
    require(type == (kind == 0 ? Type::kU32 : Type::kPred), "type is not supported");
    expect_operands(s, 3, 4);
    parts.sub = static_cast<std::uint8_t>(static_cast<int>(BarrierOp::kPopc) + kind);
    parts.op[0] = destination(s.operands[0], type);
    parts.op[3] = predicate(s.operands.back());
    first = 1;
    sources -= 2;
  }
  finish(m);
  require(sources == 1 || sources == 2, "wrong number of operands");
  require(op != 1 || sources == 2, "needs a thread count");
  parts.op[1] = source(s.operands[first], Type::kU32);
  if (sources == 2) parts.op[2] = source(s.operands[first + 1], Type::kU32);
  Instruction& in = emit(Handler{});
  in.kind = Kind::kBarrier;
  in.sub = parts.sub;
  for (int i = 0; i < 4; ++i) in.op[i] = parts.op[i];
}

void Decoder::warp_sync(const Statement& s) {
  expect_operands(s, 1, 1);
  const OperandRef members = source(s.operands[0], Type::kU32);
  Instruction& in = emit(Handler{});
  in.kind = Kind::kWarpSync;
  in.sub = static_cast<std::uint8_t>(WarpOp::kSync);
  in.op[5] = members;
}

void Decoder::shuffle(const Statement& s) {
  Modifiers m(s);
  const bool sync = m.take("sync");
  const int mode = m.take_one({"up", "down", "bfly", "idx"});
  require(mode >= 0 && m.take_type() == Type::kB32, "modifiers are not supported");
  finish(m);
  expect_operands(s, sync ? 5 : 4, sync ? 5 : 4);
  Instruction parts;
  for (int i = 1; i < 4; ++i) parts.op[i] = source(s.operands[static_cast<std::size_t>(i)], Type::kB32);
  if (sync) parts.op[5] = source(s.operands[4], Type::kB32);
  parts.op[0] = destination(*paired(s.operands[0], 0), Type::kB32);
  parts.op[4] = predicate_destination(paired(s.operands[0], 1));
  Instruction& in = emit(Handler{});
  in.kind = Kind::kWarpSync;
  in.sub = static_cast<std::uint8_t>(static_cast<int>(WarpOp::kShflUp) + mode);
  for (int i = 0; i < 6; ++i) in.op[i] = parts.op[i];
  if (!sync) in.flags |= kUniform;
}

void Decoder::vote(const Statement& s) {
  Modifiers m(s);
  const bool sync = m.take("sync");
  const int mode = m.take_one({"all", "any", "uni", "ballot"});
  const Type type = m.take_type();
  finish(m);
  require(mode >= 0 && type == (mode == 3 ? Type::kB32 : Type::kPred), "modifiers are not supported");
  expect_operands(s, sync ? 3 : 2, sync ? 3 : 2);
  Instruction parts;
  parts.op[1] = predicate(s.operands[1]);
  if (sync) parts.op[5] = source(s.operands[2], Type::kB32);
  if (mode == 3)
    parts.op[0] = destination(s.operands[0], type);
  else
    parts.op[4] = predicate_destination(&s.operands[0]);
  Instruction& in = emit(Handler{});
  in.kind = Kind::kWarpSync;
  in.sub = static_cast<std::uint8_t>(static_cast<int>(WarpOp::kVoteAll) + mode);
  for (int i = 0; i < 6; ++i) in.op[i] = parts.op[i];
  if (!sync) in.flags |= kUniform;
}

void Decoder::match(const Statement& s) {
  Modifiers m(s);
  const int mode = m.take_one({"any", "all"});
  require(m.take("sync") && mode >= 0, "modifiers are not supported");
  const Type type = m.take_type();
  finish(m);
  expect_operands(s, 3, 3);
  require(type == Type::kB32 || type == Type::kB64, "type is not supported");
  Instruction parts;
  parts.op[1] = source(s.operands[1], type);
  parts.op[5] = source(s.operands[2], Type::kB32);
  parts.op[0] = destination(*paired(s.operands[0], 0), Type::kB32);
  parts.op[4] = predicate_destination(paired(s.operands[0], 1));
  Instruction& in = emit(Handler{});
  in.kind = Kind::kWarpSync;
  in.sub = static_cast<std::uint8_t>(static_cast<int>(type == Type::kB32 ? WarpOp::kMatchAny32 : WarpOp::kMatchAny64) +
                                     mode);
  for (int i = 0; i < 6; ++i) in.op[i] = parts.op[i];
}

void Decoder::redux(const Statement& s) {
  Modifiers m(s);
  require(m.take("sync"), "needs .sync");
  const int op = m.take_one({"add", "min", "max", "and", "or", "xor"});
  const Type type = m.take_type();
  finish(m);
  require(op >= 0 && size_of(type) == 4 && !is_float(type), "modifiers are not supported");
  const bool sign = type == Type::kS32;
  const WarpOp ops[] = {WarpOp::kReduxAddU,
                        sign ? WarpOp::kReduxMinS : WarpOp::kReduxMinU,
                        sign ? WarpOp::kReduxMaxS : WarpOp::kReduxMaxU,
                        WarpOp::kReduxAnd,
                        WarpOp::kReduxOr,
                        WarpOp::kReduxXor};
  expect_operands(s, 3, 3);
  const OperandRef value = source(s.operands[1], type), members = source(s.operands[2], Type::kB32);
  const OperandRef result = destination(s.operands[0], type);
  Instruction& in = emit(Handler{});
  in.kind = Kind::kWarpSync;
  in.sub = static_cast<std::uint8_t>(ops[op]);
  in.op[0] = result, in.op[1] = value, in.op[5] = members;
}

void Decoder::elect(const Statement& s) {
  Modifiers m(s);
  require(m.take("sync"), "needs .sync");
  finish(m);
  expect_operands(s, 2, 2);
  const OperandRef members = source(s.operands[1], Type::kB32);
  const OperandRef result = destination(*paired(s.operands[0], 0), Type::kB32);
  const OperandRef p = predicate_destination(paired(s.operands[0], 1));
  Instruction& in = emit(Handler{});
  in.kind = Kind::kWarpSync;
  in.sub = static_cast<std::uint8_t>(WarpOp::kElect);
  in.op[0] = result, in.op[4] = p, in.op[5] = members;
}

void Decoder::activemask(const Statement& s) {
  Modifiers m(s);
  require(m.take_type() == Type::kB32, "needs .b32");
  finish(m);
  expect_operands(s, 1, 1);
  const OperandRef result = destination(s.operands[0], Type::kB32);
  Instruction& in = emit(Handler{});
  in.kind = Kind::kActiveMask;
  in.op[0] = result;
}

}  // namespace gpuctl::softgpu::engine
