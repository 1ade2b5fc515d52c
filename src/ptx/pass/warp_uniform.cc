#include "ptx/pass/warp_uniform.h"

#include <algorithm>
#include <set>

#include "ptx/opcode.h"

namespace gpuctl::ptx::pass {
namespace {

constexpr int kDeepest = 32;  // definitions behind each other

enum class Kind {
  kUnknown,
  kUniform,  ///< the same in all lanes of a warp
  kLane,     ///< a multiple of 32, the same in all lanes, and the lane's number: not negative
  kZero,     ///< the sign of such
};

class Finder {
 public:
  Finder(const Flow& flow, const Taint& divergence) : flow_(flow), divergence_(divergence) {}

  Kind kind_of(const Operand& operand, int depth = 0) const {
    if (operand.kind == Operand::Kind::kImmediate || operand.kind == Operand::Kind::kFloatImmediate) return Kind::kUniform;
    if (operand.kind == Operand::Kind::kSpecial) return of_special(operand);
    if (operand.kind != Operand::Kind::kRegister || depth > kDeepest) return Kind::kUnknown;
    const auto number = flow_.registers.find(operand.text);
    if (number == flow_.registers.end()) return Kind::kUnknown;
    if (divergence_.registers[number->second] == 0) return Kind::kUniform;
    const Instruction* i = only_write(flow_, operand.text);
    return i == nullptr || opcode_kind(i->opcode) != OpcodeKind::kCompute ? Kind::kUnknown : of_result(*i, depth + 1);
  }

 private:
  static Kind of_special(const Operand& special) {
    static const std::set<std::string> kUniform = {"%ctaid", "%nctaid", "%ntid", "%warpid"};
    if (special.text == "%tid") return special.component == "x" ? Kind::kLane : Kind::kUniform;
    return kUniform.count(special.text) != 0 ? Kind::kUniform : Kind::kUnknown;
  }

  /// A multiple of 32: the block's x size, or a number.
  bool is_aligned(const Operand& operand) const {
    if (operand.kind == Operand::Kind::kImmediate) return operand.bits % 32 == 0;
    if (operand.kind == Operand::Kind::kSpecial) return operand.text == "%ntid" && operand.component == "x";
    const Instruction* i = operand.kind == Operand::Kind::kRegister ? only_write(flow_, operand.text) : nullptr;
    return i != nullptr && i->opcode == "mov" && i->operands.size() == 2 && is_aligned(i->operands[1]);
  }

  Kind of_result(const Instruction& i, int depth) const {
    std::vector<Kind> kinds;
    for (std::size_t at = 1; at < i.operands.size(); ++at) kinds.push_back(kind_of(i.operands[at], depth));
    if (std::all_of(kinds.begin(), kinds.end(), [](Kind kind) { return kind == Kind::kUniform || kind == Kind::kZero; })) {
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
    if (i.opcode == "add" && ((kinds[0] == Kind::kLane && kinds[1] == Kind::kZero) || (kinds[0] == Kind::kZero && kinds[1] == Kind::kLane)))
      return Kind::kLane;
    if (kinds[0] != Kind::kLane) return Kind::kUnknown;
    if (i.opcode == "shr" && amount >= 31 && i.has("s32")) return Kind::kZero;
    if (i.opcode == "shr" && amount >= 5) return Kind::kUniform;
    if (i.opcode == "div" && amount != 0 && amount % 32 == 0) return Kind::kUniform;
    if (i.opcode == "and" && last.kind == Operand::Kind::kImmediate && amount % 32 == 0) return Kind::kUniform;
    return Kind::kUnknown;
  }

  const Flow& flow_;
  const Taint& divergence_;
};

}  // namespace

const Instruction* only_write(const Flow& flow, const std::string& name) {
  const auto number = flow.registers.find(name);
  const Instruction* found = nullptr;
  for (const FlowBlock& block : flow.blocks) {
    for (const FlowInstruction& i : block.instructions) {
      if (number == flow.registers.end() || std::find(i.writes.begin(), i.writes.end(), number->second) == i.writes.end()) continue;
      if (found != nullptr || i.instruction->guard) return nullptr;
      found = i.instruction;
    }
  }
  return found;
}

bool is_warp_uniform(const Flow& flow, const Taint& divergence, const std::string& name) {
  return Finder(flow, divergence).kind_of({.kind = Operand::Kind::kRegister, .text = name}) == Kind::kUniform;
}

}  // namespace gpuctl::ptx::pass
