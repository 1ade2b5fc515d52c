#include "ptx/pass/find_early_return.h"

#include <algorithm>

#include "ptx/analysis/definitions.h"
#include "ptx/analysis/flow.h"
#include "ptx/analysis/uniformity.h"
#include "ptx/analysis/walk.h"
#include "ptx/analysis/warp_uniform.h"
#include "ptx/syntax/opcode.h"

namespace gpuctl::ptx::pass {
namespace {

struct Findings {
  bool barrier = false;      ///< some threads may go on to a barrier that others do not come to
  bool warp_sync = false;    ///< some lanes may go on to an instruction of their warp after others returned
  bool whole_warps = false;  ///< the same, but only in blocks that do not consist of whole warps
  /// Refines `barrier`: threads may diverge in this way after a barrier, or into several groups that come to barriers.
  /// If not, each thread returns before all barriers or comes to all of them.
  bool late = false;
  std::vector<const Instruction*> branches;    ///< where they diverge in this way
  const Instruction* common_branch = nullptr;  ///< the only branch, if all threads of the block come to it once
  bool returns_if_taken = false;               ///< of common_branch
};

class Finder {
 public:
  explicit Finder(const Kernel& kernel) : kernel_(kernel) {}

  Findings run(const Function& function) {
    const Result<Flow> built = build_flow(function);
    if (!built) return {.barrier = true, .warp_sync = true, .late = true};  // refused by refuse_waiting_blocks
    const Flow& flow = *built;
    const Taint divergence = find_divergence(function, flow);
    const Definitions definitions(flow);
    const Taint warp_divergence =
        kernel_.closure.has_warp_sync ? find_warp_divergence(function, flow, definitions) : Taint{};
    WarpUniformity uniformity(flow, warp_divergence, definitions);
    const std::vector<char> after_barrier = spread(flow, &FlowBlock::successors);
    const std::vector<char> before_barrier = spread(flow, &FlowBlock::predecessors);
    Findings result;
    std::vector<char> parted_blocks(flow.blocks.size(), 0);
    int last_bad = -1;
    for (std::size_t b = 0; b < flow.blocks.size(); ++b) {
      for (const FlowInstruction& i : flow.blocks[b].instructions) {
        const bool parted = i.instruction->guard && divergence.registers[i.reads[0]] != 0;
        if (parted && meets_block(*i.instruction)) result.barrier = result.late = true;
      }
      if (!divergence.branches[b]) continue;
      const Instruction& branch = *flow.blocks[b].instructions.back().instruction;
      const bool to_exit = kernel_.closure.has_warp_sync && only_returns(flow, flow.post_dominator[b]) &&
                           !(branch.guard && uniformity.holds_in_any_block(branch.guard->reg));
      const bool warps_agree = to_exit && branch.guard && uniformity.holds(branch.guard->reg);
      const auto& sides = flow.blocks[b].successors;
      const auto sides_with_barrier =
          std::count_if(sides.begin(), sides.end(), [&](int side) { return before_barrier[side] != 0; });
      const std::vector<char> region = flow.region(static_cast<int>(b));
      bool bad = false;
      for (std::size_t r = 0; r < region.size(); ++r) {
        if (!region[r]) continue;
        parted_blocks[r] = 1;
        for (const FlowInstruction& i : flow.blocks[r].instructions) {
          if (meets_block(*i.instruction)) {
            bad = result.barrier = true;
            result.late = result.late || after_barrier[b] || sides_with_barrier > 1;
          }
          if (to_exit && meets_warp(*i.instruction) && !spares(definitions, branch, *i.instruction)) {
            (warps_agree ? result.whole_warps : result.warp_sync) = true;
          }
        }
      }
      if (!bad) continue;
      result.branches.push_back(&branch);
      last_bad = static_cast<int>(b);
    }
    if (result.branches.size() == 1 && !parted_blocks[last_bad]) {
      const Instruction& branch = *result.branches[0];
      const auto& sides = flow.blocks[last_bad].successors;
      if (branch.guard && branch.opcode != "brx" && sides.size() == 2) {
        const int taken = sides[0] == last_bad + 1 ? sides[1] : sides[0];
        result.common_branch = &branch;
        result.returns_if_taken = !before_barrier[taken];
      }
    }
    return result;
  }

 private:
  /// Whether a thread that comes to this block waits for no other thread before it returns. Compilers merge all returns
  /// into one block.
  bool only_returns(const Flow& flow, int block) const {
    std::vector<char> seen(flow.blocks.size(), 0);
    std::vector<int> work{block};
    while (!work.empty()) {
      const int at = work.back();
      work.pop_back();
      if (at < 0 || seen[at]) continue;
      seen[at] = 1;
      for (const FlowInstruction& i : flow.blocks[at].instructions) {
        if (meets_block(*i.instruction) || meets_warp(*i.instruction)) return false;
      }
      work.insert(work.end(), flow.blocks[at].successors.begin(), flow.blocks[at].successors.end());
    }
    return true;
  }

  /// Whether no lane that `sync` names returns at `branch`, which separates the lanes below some number from the
  /// others.
  static bool spares(const Definitions& definitions, const Instruction& branch, const Instruction& sync) {
    const Operand* mask = sync.operands.empty() ? nullptr : &sync.operands.back();
    if (mask != nullptr && mask->kind == Operand::Kind::kRegister) {
      const Instruction* set = definitions.only(mask->text);
      mask = set != nullptr && set->opcode == "mov" ? &set->operands[1] : nullptr;
    }
    if (mask == nullptr || mask->kind != Operand::Kind::kImmediate || !branch.guard) return false;
    const Instruction* condition = definitions.only(branch.guard->reg);
    if (condition == nullptr || condition->opcode != "setp" || condition->modifiers.size() != 2 ||
        !condition->has("u32"))
      return false;
    const Operand& left = condition->operands[1];
    const Operand& right = condition->operands[2];
    const Instruction* index = left.kind == Operand::Kind::kRegister ? definitions.only(left.text) : nullptr;
    if (index == nullptr || index->opcode != "mov" || index->operands[1].text != "%tid" ||
        index->operands[1].component != "x")
      return false;
    if (right.kind != Operand::Kind::kImmediate || right.bits >= 32) return false;
    // It does not matter which side returns: the lanes below the number stay in the region with the instruction, as its
    // mask names them.
    const bool above = condition->has("gt") || condition->has("le");
    const bool at_least = condition->has("ge") || condition->has("lt");
    const std::uint64_t stay = right.bits + (above ? 1 : 0);
    return (above || at_least) && mask->bits < (std::uint64_t{1} << stay);
  }

  /// The basic blocks that contain a barrier, those after one (by successors), or those before one (by predecessors).
  std::vector<char> spread(const Flow& flow, std::vector<int> FlowBlock::*neighbours) const {
    std::vector<char> result(flow.blocks.size(), 0);
    std::vector<int> work;
    for (std::size_t b = 0; b < flow.blocks.size(); ++b) {
      for (const FlowInstruction& i : flow.blocks[b].instructions) {
        if (!meets_block(*i.instruction)) continue;
        work.push_back(static_cast<int>(b));
        break;
      }
    }
    while (!work.empty()) {
      const int block = work.back();
      work.pop_back();
      if (result[block]) continue;
      result[block] = 1;
      for (int neighbour : flow.blocks[block].*neighbours) work.push_back(neighbour);
    }
    return result;
  }

  const Closure* callee(const Instruction& instruction) const {
    if (instruction.opcode != "call") return nullptr;
    const std::string target(call_target(instruction));
    return target.empty() ? &kernel_.closure : &kernel_.facts.closure(target);
  }

  bool meets_block(const Instruction& instruction) const {
    if (const Closure* called = callee(instruction)) return called->has_barrier;
    if (!is_barrier(instruction)) return false;
    // A barrier with a thread count does not depend on which threads have returned.
    return instruction.operands.size() == (instruction.has("red") ? 3u : 1u);
  }

  bool meets_warp(const Instruction& instruction) const {
    if (const Closure* called = callee(instruction)) return called->has_warp_sync;
    return is_warp_sync(instruction);
  }

  const Kernel& kernel_;
};

}  // namespace

Refused find_early_return(Kernel& kernel) {
  if (!kernel.closure.has_barrier && !kernel.closure.has_warp_sync) return {};
  Finder finder(kernel);
  Findings findings = finder.run(kernel.original);
  // A lane that returns early from a called function goes on in its caller, so only the entry's own exits matter to a
  // warp.
  for (const std::string& name : kernel.closure.functions) {
    if (!kernel.facts.closure(name).has_barrier) continue;
    findings.barrier |= finder.run(*kernel.facts.find(name)->function).barrier;
    findings.late = true;  // returns_only_first covers only barriers of the entry itself
  }
  if (findings.warp_sync)
    return "a lane may return before a warp-level instruction that could wait for it (shfl.sync and the like)";
  kernel.report.needs_whole_warps = findings.whole_warps;
  kernel.report.needs_finished_barrier = findings.barrier && kernel.closure.has_barrier;
  if (!kernel.report.needs_finished_barrier) return {};
  kernel.report.returns_only_first = !findings.late;
  if (!findings.late && findings.common_branch != nullptr) {
    std::size_t place = 0;
    for_each_instruction(*kernel.original.body, [&](const Instruction& instruction) {
      if (&instruction == findings.common_branch) kernel.return_branch = {place, findings.returns_if_taken};
      ++place;
    });
  }
  if (kernel.closure.has_other_barrier) return "threads may return before barriers that are named, counted or reducing";
  for (const std::string& name : kernel.closure.by_address) {
    if (kernel.facts.closure(name).has_barrier)
      return "threads may return before a barrier in a function called through a pointer";
  }
  return {};
}

}  // namespace gpuctl::ptx::pass
