#include "ptx/analysis/taint.h"

#include <algorithm>

namespace gpuctl::ptx {
namespace {

/// Blocks reachable from `start` (itself included) without entering `end`.
std::vector<char> reach(const Flow& flow, int start, int end) {
  std::vector<char> result(flow.blocks.size(), 0);
  std::vector<int> work{start};
  while (!work.empty()) {
    const int block = work.back();
    work.pop_back();
    if (block == end || block < 0 || result[block]) continue;
    result[block] = 1;
    for (int successor : flow.blocks[block].successors) work.push_back(successor);
  }
  return result;
}

/// Taints what becomes different when threads diverge at the end of `branch`, provided each thread comes to it once
/// before they meet again. That is every register written in blocks that several sides lead to, and every register
/// written on one side and read elsewhere afterwards.
void taint_parting(const Flow& flow, int branch, const std::vector<char>& region, Taint& taint) {
  const int end = flow.post_dominator[branch];
  std::vector<int> sides(flow.blocks.size(), 0);
  std::vector<int> side_of(flow.blocks.size(), -1);
  for (int side : flow.blocks[branch].successors) {
    const std::vector<char> reached = reach(flow, side, end);
    for (std::size_t b = 0; b < reached.size(); ++b) {
      if (!reached[b]) continue;
      ++sides[b];
      side_of[b] = side;
    }
  }
  const std::vector<char> after = end < 0 ? std::vector<char>(flow.blocks.size(), 1) : reach(flow, end, -1);
  for (std::size_t b = 0; b < region.size(); ++b) {
    if (region[b] && sides[b] > 1) taint.blocks[b] = 1;
  }
  for (int side : flow.blocks[branch].successors) {
    std::vector<char> written(flow.registers.size(), 0);
    for (std::size_t b = 0; b < region.size(); ++b) {
      if (!region[b] || sides[b] != 1 || side_of[b] != side) continue;
      for (const FlowInstruction& i : flow.blocks[b].instructions) {
        for (int reg : i.writes) written[reg] = 1;
      }
    }
    for (std::size_t b = 0; b < flow.blocks.size(); ++b) {
      const bool elsewhere = after[b] || (region[b] && !(sides[b] == 1 && side_of[b] == side));
      if (!elsewhere) continue;
      for (const FlowInstruction& i : flow.blocks[b].instructions) {
        for (int reg : i.reads) taint.registers[reg] |= written[reg];
      }
    }
  }
}

}  // namespace

Taint spread_taint(const Flow& flow, const TaintRules& rules) {
  Taint taint{std::vector<char>(flow.registers.size(), 0), std::vector<char>(flow.blocks.size(), 0),
              std::vector<char>(flow.blocks.size(), 0)};
  for (int reg : rules.registers) taint.registers[reg] = 1;
  const auto inside = [&](std::size_t block) { return rules.within == nullptr || (*rules.within)[block] != 0; };
  const auto reads_taint = [&](const FlowInstruction& instruction) {
    return std::any_of(instruction.reads.begin(), instruction.reads.end(),
                       [&](int reg) { return taint.registers[reg] != 0; });
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
      if (rules.sides_agree && !region[b]) {
        taint_parting(flow, static_cast<int>(b), region, taint);
        continue;
      }
      for (std::size_t i = 0; i < region.size(); ++i) {
        if (region[i] && inside(i)) taint.blocks[i] = 1;
      }
    }
  }
  return taint;
}

}  // namespace gpuctl::ptx
