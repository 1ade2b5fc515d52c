#include "ptx/analysis/grid_walk.h"

#include <algorithm>

#include "ptx/analysis/flow.h"
#include "ptx/analysis/walk.h"

namespace gpuctl::ptx {
namespace {

/// The result is a multiple of each register that it is computed from, or the same.
bool multiplies(const Instruction& instruction) {
  return is_one_of(instruction, {"mov", "mul", "mul24", "shl", "cvt"});
}

bool reads_nctaid(const Instruction& instruction) {
  bool result = false;
  for (const Operand& operand : instruction.operands) {
    for_each_operand(operand, [&](const Operand& inner) {
      result = result || (inner.kind == Operand::Kind::kSpecial && inner.text == "%nctaid");
    });
  }
  return result;
}

/// Registers whose value is computed from those that are set, by instructions that `carries` accepts in the blocks that
/// `counts` accepts. Sets them too.
void carry(const Flow& flow, std::vector<char>& registers, const auto& counts, const auto& carries) {
  const auto is_set = [&](int reg) { return registers[static_cast<std::size_t>(reg)] != 0; };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t b = 0; b < flow.blocks.size(); ++b) {
      if (!counts(b)) continue;
      for (const FlowInstruction& i : flow.blocks[b].instructions) {
        if (!carries(*i.instruction) || std::none_of(i.reads.begin(), i.reads.end(), is_set)) continue;
        for (const int reg : i.writes) {
          changed |= !is_set(reg);
          registers[static_cast<std::size_t>(reg)] = 1;
        }
      }
    }
  }
}

/// By register: a multiple of the number of blocks.
std::vector<char> multiples_of_grid(const Flow& flow) {
  std::vector<char> found(flow.registers.size(), 0);
  for (const FlowBlock& block : flow.blocks) {
    for (const FlowInstruction& i : block.instructions) {
      if (!reads_nctaid(*i.instruction) || !multiplies(*i.instruction)) continue;
      for (const int reg : i.writes) found[static_cast<std::size_t>(reg)] = 1;
    }
  }
  carry(
      flow, found, [](std::size_t) { return true; }, multiplies);
  return found;
}

/// Whether what the instruction writes comes back to one of the registers that it reads, other than those in `step`,
/// when the loop is run again.
bool comes_back(const Flow& flow, const FlowLoop& loop, const FlowInstruction& add, const std::vector<char>& step) {
  std::vector<char> from_sum(flow.registers.size(), 0);
  for (const int reg : add.writes) from_sum[static_cast<std::size_t>(reg)] = 1;
  carry(
      flow, from_sum, [&](std::size_t b) { return loop.contains[b] != 0; },
      [](const Instruction& i) {
        return is_one_of(i, {"mov", "cvt", "add", "selp"});
      });
  return std::any_of(add.reads.begin(), add.reads.end(), [&](int reg) {
    return from_sum[static_cast<std::size_t>(reg)] != 0 && step[static_cast<std::size_t>(reg)] == 0;
  });
}

}  // namespace

bool walks_grid(const Function& kernel) {
  const Result<Flow> flow = build_flow(kernel);
  if (!flow) return false;
  const std::vector<char> step = multiples_of_grid(*flow);
  const auto is_step = [&](int reg) { return step[static_cast<std::size_t>(reg)] != 0; };
  for (const FlowLoop& loop : flow->loops) {
    for (std::size_t b = 0; b < flow->blocks.size(); ++b) {
      if (!loop.contains[b]) continue;
      for (const FlowInstruction& i : flow->blocks[b].instructions) {
        if (is_one_of(*i.instruction, {"add", "mad", "mad24"}) &&
            std::any_of(i.reads.begin(), i.reads.end(), is_step) && comes_back(*flow, loop, i, step))
          return true;
      }
    }
  }
  return false;
}

}  // namespace gpuctl::ptx
