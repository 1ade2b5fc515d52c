#include "ptx/analysis/uniformity.h"

#include <functional>

#include "ptx/analysis/walk.h"
#include "ptx/syntax/opcode.h"

namespace gpuctl::ptx {
namespace {

constexpr std::uint64_t kAllLanes = 0xffffffff;

bool is_uniform_special(std::string_view name) {
  for (const char* known : {"%ctaid", "%nctaid", "%ntid", "WARP_SZ", "%dynamic_smem_size", "%gridid"}) {
    if (name == known) return true;
  }
  return false;
}

bool reads_differing_special(const Instruction& instruction) {
  bool result = false;
  for (const Operand& operand : instruction.operands) {
    for_each_operand(operand, [&](const Operand& inner) {
      result = result || (inner.kind == Operand::Kind::kSpecial && !is_uniform_special(inner.text));
    });
  }
  return result;
}

/// A load that gives the same value to all threads with the same address: from a kernel parameter, constant memory, or
/// memory that the program declares read-only.
bool is_uniform_load(const Instruction& load, const std::set<std::string>& kernel_params) {
  if (load.opcode != "ld" || load.operands.size() < 2 || load.operands[1].kind != Operand::Kind::kAddress) return false;
  if (load.has("const") || (load.has("global") && load.has("nc"))) return true;
  return load.has("param") && kernel_params.count(load.operands[1].items[0].text) != 0;
}

bool is_block_reduction(const FlowInstruction& flow_instruction) {
  const Instruction& instruction = *flow_instruction.instruction;
  return is_block_barrier(instruction) && instruction.has("red");
}

/// A vote of all lanes of a warp: each of them gets the same result.
bool is_whole_vote(const Instruction& instruction, const Definitions& definitions) {
  if (instruction.opcode != "vote" || !instruction.has("sync") || instruction.operands.empty()) return false;
  const Operand* mask = &instruction.operands.back();
  if (mask->kind == Operand::Kind::kRegister) {
    const Instruction* set = definitions.only(mask->text);
    mask = set != nullptr && set->opcode == "mov" ? &set->operands[1] : nullptr;
  }
  return mask != nullptr && mask->kind == Operand::Kind::kImmediate && (mask->bits & kAllLanes) == kAllLanes;
}

/// `agreed`: instructions whose results are the same in all the threads that are compared.
Taint find_differences(const Function& function, const Flow& flow,
                       const std::function<bool(const FlowInstruction&)>& agreed) {
  std::set<std::string> kernel_params;
  TaintRules rules;
  rules.sides_agree = true;
  for (const Variable& param : function.params) {
    if (function.is_entry) {
      kernel_params.insert(param.names[0].name);
    } else if (const auto found = flow.registers.find(param.names[0].name); found != flow.registers.end()) {
      rules.registers.push_back(found->second);
    }
  }
  rules.is_source = [&](const FlowInstruction& flow_instruction) {
    const Instruction& instruction = *flow_instruction.instruction;
    if (reads_differing_special(instruction)) return true;
    switch (opcode_kind(instruction.opcode)) {
      case OpcodeKind::kLoad:
        return !is_uniform_load(instruction, kernel_params);
      case OpcodeKind::kBarrier:
      case OpcodeKind::kWarp:
        return !agreed(flow_instruction);
      case OpcodeKind::kAtomic:
      case OpcodeKind::kCall:
      case OpcodeKind::kUnknown:
        return true;
      default:
        return false;
    }
  };
  rules.is_clean = agreed;
  return spread_taint(flow, rules);
}

}  // namespace

Taint find_divergence(const Function& function, const Flow& flow) {
  return find_differences(function, flow, is_block_reduction);
}

Taint find_warp_divergence(const Function& function, const Flow& flow, const Definitions& definitions) {
  return find_differences(function, flow, [&](const FlowInstruction& instruction) {
    return is_block_reduction(instruction) || is_whole_vote(*instruction.instruction, definitions);
  });
}

}  // namespace gpuctl::ptx
