// What depends, through data or control, on some source values: one engine for "which branches may threads of a block
// take differently" and for "which loops wait for another block".
#pragma once

#include <functional>
#include <vector>

#include "ptx/flow.h"

namespace gpuctl::ptx {

struct TaintRules {
  /// The instruction's results depend on a source by itself.
  std::function<bool(const FlowInstruction&)> is_source;
  /// The instruction's results do not depend on what it reads (but on being reached).
  std::function<bool(const FlowInstruction&)> is_clean;
  const std::vector<char>* within = nullptr;  ///< only these blocks count; null: all
  /// The question is about differences between threads, and who took one side of a branch has that in common: what is
  /// written on one side only, and read there only, is not tainted by the branch.
  bool sides_agree = false;
  std::vector<int> registers;  ///< sources from the start
};

struct Taint {
  std::vector<char> registers;  ///< by number of Flow::registers
  std::vector<char> branches;   ///< by block: its last instruction decides by a tainted value where to go
  std::vector<char> blocks;     ///< by block: what it writes depends on a tainted branch
};

/// The least solution. A register counts as tainted everywhere once one write of it is.
Taint spread_taint(const Flow& flow, const TaintRules& rules);

}  // namespace gpuctl::ptx
