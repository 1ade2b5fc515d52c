#include "ptx/analysis/warp_uniform.h"

#include <algorithm>
#include <set>
#include <vector>

#include "ptx/syntax/opcode.h"

namespace gpuctl::ptx::pass {

WarpUniformity::WarpUniformity(const Flow& flow, const Taint& divergence, const Definitions& definitions)
    : flow_(flow), divergence_(divergence), definitions_(definitions), apart_(flow.registers.size(), 0) {
  for (std::size_t branch = 0; branch < divergence.branches.size(); ++branch) {
    if (!divergence.branches[branch]) continue;
    const std::vector<char> region = flow.region(static_cast<int>(branch));
    for (std::size_t b = 0; b < region.size(); ++b) {
      if (!region[b]) continue;
      for (const FlowInstruction& i : flow.blocks[b].instructions) {
        for (const int written : i.writes) apart_[written] = 1;
      }
    }
  }
}

bool WarpUniformity::holds(const std::string& name) {
  return of_register(name) == Kind::kUniform;
}

bool WarpUniformity::holds_in_any_block(const std::string& name) const {
  const auto number = flow_.registers.find(name);
  return number != flow_.registers.end() && divergence_.registers[number->second] == 0;
}

WarpUniformity::Kind WarpUniformity::kind_of(const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::kImmediate:
    case Operand::Kind::kFloatImmediate:
      return Kind::kUniform;
    case Operand::Kind::kSpecial:
      return of_special(operand);
    case Operand::Kind::kRegister:
      return of_register(operand.text);
    default:
      return Kind::kUnknown;
  }
}

WarpUniformity::Kind WarpUniformity::of_register(const std::string& name) {
  const auto number = flow_.registers.find(name);
  if (number == flow_.registers.end()) return Kind::kUnknown;
  if (holds_in_any_block(name)) return Kind::kUniform;
  // Unknown while it is being computed: a register may be computed from itself.
  const auto [known, is_new] = kinds_.emplace(name, Kind::kUnknown);
  if (!is_new) return known->second;
  // Lanes that are apart may have computed it last in different rounds of a loop.
  const Instruction* i = apart_[number->second] ? definitions_.once(name) : definitions_.only(name);
  if (i == nullptr || opcode_kind(i->opcode) != OpcodeKind::kCompute) return Kind::kUnknown;
  return known->second = of_result(*i);
}

WarpUniformity::Kind WarpUniformity::of_special(const Operand& special) {
  static const std::set<std::string> kUniform = {"%ctaid", "%nctaid", "%ntid", "%warpid"};
  if (special.text == "%tid") return special.component == "x" ? Kind::kLane : Kind::kUniform;
  return kUniform.count(special.text) != 0 ? Kind::kUniform : Kind::kUnknown;
}

bool WarpUniformity::is_aligned(const Operand& operand) const {
  if (operand.kind == Operand::Kind::kImmediate) return operand.bits % 32 == 0;
  if (operand.kind == Operand::Kind::kSpecial) return operand.text == "%ntid" && operand.component == "x";
  const Instruction* i = operand.kind == Operand::Kind::kRegister ? definitions_.only(operand.text) : nullptr;
  return i != nullptr && i->opcode == "mov" && i->operands[1].kind != Operand::Kind::kRegister &&
         is_aligned(i->operands[1]);
}

WarpUniformity::Kind WarpUniformity::of_result(const Instruction& i) {
  std::vector<Kind> kinds;
  for (std::size_t at = 1; at < i.operands.size(); ++at) kinds.push_back(kind_of(i.operands[at]));
  if (std::all_of(kinds.begin(), kinds.end(),
                  [](Kind kind) { return kind == Kind::kUniform || kind == Kind::kZero; })) {
    const bool zero = (i.opcode == "shr" || i.opcode == "mov") && kinds[0] == Kind::kZero;
    return zero ? Kind::kZero : Kind::kUniform;
  }
  const bool word = i.has("u32") || i.has("s32") || i.has("b32");
  if (!word || i.has("wide") || i.has("hi") || i.has("sat")) return Kind::kUnknown;
  const Operand& last = i.operands.back();
  const std::uint64_t amount = last.kind == Operand::Kind::kImmediate ? last.bits : 0;
  if (i.opcode == "mov") return kinds[0];
  if (i.opcode == "mad" && kinds[2] == Kind::kLane && kinds[0] == Kind::kUniform && kinds[1] == Kind::kUniform) {
    return is_aligned(i.operands[1]) || is_aligned(i.operands[2]) ? Kind::kLane : Kind::kUnknown;
  }
  if (i.opcode == "add" &&
      ((kinds[0] == Kind::kLane && kinds[1] == Kind::kZero) || (kinds[0] == Kind::kZero && kinds[1] == Kind::kLane))) {
    return Kind::kLane;
  }
  if (kinds[0] != Kind::kLane) return Kind::kUnknown;
  if (i.opcode == "shr" && amount >= 31 && i.has("s32")) return Kind::kZero;
  if (i.opcode == "shr" && amount >= 5) return Kind::kUniform;
  if (i.opcode == "div" && amount != 0 && amount % 32 == 0) return Kind::kUniform;
  if (i.opcode == "and" && last.kind == Operand::Kind::kImmediate && amount % 32 == 0) return Kind::kUniform;
  return Kind::kUnknown;
}

}  // namespace gpuctl::ptx::pass
