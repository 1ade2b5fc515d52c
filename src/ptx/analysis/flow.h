// The control flow of one function body: basic blocks, dominators, post-dominators and loops.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ptx/syntax/syntax.h"

namespace gpuctl::ptx {

/// An instruction with the registers it reads and writes as numbers. The carry flag of `add.cc` counts as a register. A
/// name declared in several scopes counts as one register, which only makes an analysis more careful.
struct FlowInstruction {
  const Instruction* instruction;
  std::vector<int> reads;  ///< guard included
  std::vector<int> writes;
};

struct FlowBlock {
  std::vector<FlowInstruction> instructions;
  std::vector<int> successors;
  std::vector<int> predecessors;
};

/// A loop with one entry: the blocks from which its header can be reached again without leaving the loop. Loops with
/// the same header are listed one by one, and once merged.
struct FlowLoop {
  int header;
  std::vector<char> contains;  ///< by block
};

struct Flow {
  std::vector<FlowBlock> blocks;    ///< [0] is the entry; the last one is the exit, which is empty
  std::vector<int> dominator;       ///< immediate, by block; -1 for the entry and unreachable blocks
  std::vector<int> post_dominator;  ///< immediate, by block; -1 for the exit
  std::vector<FlowLoop> loops;
  bool irreducible = false;  ///< some cycle has several entries and is in no loop of `loops`
  std::unordered_map<std::string, int> registers;

  int exit() const { return static_cast<int>(blocks.size()) - 1; }

  /// The blocks that can be reached from the successors of `block` before its immediate post-dominator. Only a part of
  /// the threads may run them when threads diverge at the end of `block`. `block` itself is among them if it is in a
  /// cycle.
  std::vector<char> region(int block) const;
};

/// The flow of a function with a body, which must outlive the result. Errors: a branch whose targets are not known.
Result<Flow> build_flow(const Function& function);

}  // namespace gpuctl::ptx
