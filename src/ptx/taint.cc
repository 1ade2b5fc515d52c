#include "ptx/taint.h"

#include <algorithm>

namespace gpuctl::ptx {

Taint spread_taint(const Flow& flow, const TaintRules& rules) {
  Taint taint{std::vector<char>(flow.registers.size(), 0), std::vector<char>(flow.blocks.size(), 0),
              std::vector<char>(flow.blocks.size(), 0)};
  for (int reg : rules.registers) taint.registers[reg] = 1;
  const auto inside = [&](std::size_t block) { return rules.within == nullptr || (*rules.within)[block] != 0; };
  const auto reads_taint = [&](const FlowInstruction& instruction) {
    return std::any_of(instruction.reads.begin(), instruction.reads.end(), [&](int reg) { return taint.registers[reg] != 0; });
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t b = 0; b < flow.blocks.size(); ++b) {
      if (!inside(b)) continue;
      const FlowBlock& block = flow.blocks[b];
      for (const FlowInstruction& instruction : block.instructions) {
        const bool guarded = instruction.instruction->guard && taint.registers[instruction.reads[0]] != 0;
        const bool tainted = taint.blocks[b] != 0 || guarded || (rules.is_source && rules.is_source(instruction)) ||
                             (reads_taint(instruction) && !(rules.is_clean && rules.is_clean(instruction)));
        if (!tainted) continue;
        for (int reg : instruction.writes) {
          changed = changed || taint.registers[reg] == 0;
          taint.registers[reg] = 1;
        }
      }
      if (taint.branches[b] || block.successors.size() < 2 || block.instructions.empty()) continue;
      if (!reads_taint(block.instructions.back())) continue;
      taint.branches[b] = 1;
      changed = true;
      const std::vector<char> region = flow.region(static_cast<int>(b));
      for (std::size_t i = 0; i < region.size(); ++i) {
        if (region[i] && inside(i)) taint.blocks[i] = 1;
      }
    }
  }
  return taint;
}

}  // namespace gpuctl::ptx
