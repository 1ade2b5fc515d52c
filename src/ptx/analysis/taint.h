// Finds what depends, through data or control, on some source values. One engine answers two questions: at which
// branches threads of a block may diverge, and which loops wait for another block.
#pragma once

#include <functional>
#include <vector>

#include "ptx/analysis/flow.h"

namespace gpuctl::ptx {

struct TaintRules {
  /// The instruction is itself a source.
  std::function<bool(const FlowInstruction&)> is_source;
  /// The instruction's results do not depend on its inputs (only on whether it is reached).
  std::function<bool(const FlowInstruction&)> is_clean;
  const std::vector<char>* within = nullptr;  ///< only these blocks count; null: all
  /// Set if the question is about differences between threads. All threads on one side of a branch took the same side,
  /// so the branch does not taint what is both written and read on one side only.
  bool sides_agree = false;
  std::vector<int> registers;  ///< sources from the start
};

struct Taint {
  std::vector<char> registers;  ///< by number of Flow::registers
  std::vector<char> branches;   ///< by block: a tainted value decides where its last instruction goes
  std::vector<char> blocks;     ///< by block: what it writes depends on a tainted branch
};

/// The least solution. A register counts as tainted everywhere once one write of it is.
Taint spread_taint(const Flow& flow, const TaintRules& rules);

}  // namespace gpuctl::ptx
