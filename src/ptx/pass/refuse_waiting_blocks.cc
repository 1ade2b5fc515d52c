#include "ptx/pass/refuse_waiting_blocks.h"

#include <algorithm>

#include "ptx/analysis/flow.h"
#include "ptx/analysis/taint.h"
#include "ptx/analysis/walk.h"
#include "ptx/syntax/opcode.h"

namespace gpuctl::ptx::pass {
namespace {

bool contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool has_register(const Operand& operand, const std::string& name) {
  return operand.kind == Operand::Kind::kRegister && operand.text == name;
}

/// The loops of one function body.
class LoopChecker {
 public:
  LoopChecker(const Kernel& kernel, const Function& function, const Flow& flow) : kernel_(kernel), flow_(flow) {
    if (!function.is_entry) return;
    for (const Variable& param : function.params) kernel_params_.insert(param.names[0].name);
  }

  bool may_wait(const FlowLoop& loop) {
    loop_ = &loop;
    retries_.clear();
    bool reads = false;
    each([&](const FlowInstruction& i) {
      reads = reads || reads_shared_state(i);
      if (i.instruction->opcode == "atom" && is_retry(*i.instruction)) retries_.push_back(i.instruction);
    });
    if (!reads) return false;
    Taint taint = solve(false);
    // Another thread may load what this one stores, and act on it.
    if (stores_taint(taint)) taint = solve(true);
    for (std::size_t b = 0; b < flow_.blocks.size(); ++b) {
      if (!loop.contains[b] || !taint.branches[b]) continue;
      for (int to : flow_.blocks[b].successors) {
        if (!loop.contains[to]) return true;
      }
    }
    return false;
  }

 private:
  template <class Visit>
  void each(Visit visit) const {
    for (std::size_t b = 0; b < flow_.blocks.size(); ++b) {
      if (!loop_->contains[b]) continue;
      for (const FlowInstruction& instruction : flow_.blocks[b].instructions) visit(instruction);
    }
  }

  bool reads_shared_state(const FlowInstruction& i) const {
    if (i.instruction->opcode != "call") return is_shared_state_read(*i.instruction);
    const std::string target(call_target(*i.instruction));
    // Functions called through a pointer are in the kernel's closure.
    return target.empty() ? kernel_.closure.reads_shared_state : kernel_.facts.closure(target).reads_shared_state;
  }

  /// atom.cas whose expected value is, inside the loop, the result of the previous try or a fresh plain load.
  bool is_retry(const Instruction& cas) const {
    if (!cas.has("cas") || cas.operands.size() < 4) return false;
    const Operand& result = cas.operands[0];
    const Operand& expected = cas.operands[2];
    if (result.kind != Operand::Kind::kRegister || expected.kind != Operand::Kind::kRegister) return false;
    bool renewed = false;
    bool other = false;
    each([&](const FlowInstruction& i) {
      if (i.instruction == &cas || !contains(i.writes, flow_.registers.at(expected.text))) return;
      const Instruction& writer = *i.instruction;
      const bool copy = writer.opcode == "mov" && writer.operands.size() == 2 &&
                        has_register(writer.operands[0], expected.text) &&
                        has_register(writer.operands[1], result.text);
      const bool load =
          writer.opcode == "ld" && !is_shared_state_read(writer) && has_register(writer.operands[0], expected.text);
      (copy || load ? renewed : other) = true;
    });
    return renewed && !other;
  }

  /// `setp.eq/ne` of a retry's result with its own expected value.
  bool tests_retry(const FlowInstruction& i) const {
    const Instruction& test = *i.instruction;
    if (test.opcode != "setp" || test.operands.size() != 3 || (!test.has("eq") && !test.has("ne"))) return false;
    return std::any_of(retries_.begin(), retries_.end(), [&](const Instruction* cas) {
      const std::string& result = cas->operands[0].text;
      const std::string& expected = cas->operands[2].text;
      return (has_register(test.operands[1], result) && has_register(test.operands[2], expected)) ||
             (has_register(test.operands[1], expected) && has_register(test.operands[2], result));
    });
  }

  bool is_call_result(const Instruction& load) const {
    return load.opcode == "ld" && load.has("param") && load.operands.size() == 2 &&
           kernel_params_.count(load.operands[1].items.empty() ? "" : load.operands[1].items[0].text) == 0;
  }

  Taint solve(bool through_memory) const {
    TaintRules rules;
    rules.within = &loop_->contains;
    bool calls = false;
    each(
        [&](const FlowInstruction& i) { calls = calls || (i.instruction->opcode == "call" && reads_shared_state(i)); });
    rules.is_source = [this, through_memory, calls](const FlowInstruction& i) {
      if (reads_shared_state(i)) return true;
      if (calls && is_call_result(*i.instruction)) return true;
      return through_memory && opcode_kind(i.instruction->opcode) == OpcodeKind::kLoad &&
             !i.instruction->has("const") && !i.instruction->has("nc") &&
             (!i.instruction->has("param") || is_call_result(*i.instruction));
    };
    rules.is_clean = [this](const FlowInstruction& i) { return tests_retry(i); };
    return spread_taint(flow_, rules);
  }

  /// A store inside the loop whose value, address or execution is tainted. The swaps of retries do not count.
  bool stores_taint(const Taint& taint) const {
    bool result = false;
    for (std::size_t b = 0; b < flow_.blocks.size(); ++b) {
      if (!loop_->contains[b]) continue;
      for (const FlowInstruction& i : flow_.blocks[b].instructions) {
        const OpcodeKind kind = opcode_kind(i.instruction->opcode);
        const bool stores = kind == OpcodeKind::kEffect || kind == OpcodeKind::kAtomic || kind == OpcodeKind::kCall;
        if (!stores || std::find(retries_.begin(), retries_.end(), i.instruction) != retries_.end()) continue;
        const bool reads =
            std::any_of(i.reads.begin(), i.reads.end(), [&](int reg) { return taint.registers[reg] != 0; });
        result = result || reads || taint.blocks[b] != 0;
      }
    }
    return result;
  }

  const Kernel& kernel_;
  const Flow& flow_;
  std::set<std::string> kernel_params_;
  const FlowLoop* loop_ = nullptr;
  std::vector<const Instruction*> retries_;
};

Refused check_function(const Kernel& kernel, const std::string& name) {
  const Function& function = *kernel.facts.find(name)->function;
  const std::string where = function.is_entry ? "" : "calls '" + name + "': ";
  const Result<Flow> flow = build_flow(function);
  if (!flow) return where + flow.error().message;
  const Closure& closure = kernel.facts.closure(name);
  if (!closure.reads_shared_state && !(closure.calls_indirectly && kernel.closure.reads_shared_state)) return {};
  if (flow->irreducible) return where + "reads memory shared with other blocks in a loop with several entries";
  if (closure.functions.count(name) != 0) return where + "reads memory shared with other blocks in a recursion";
  LoopChecker checker(kernel, function, *flow);
  for (const FlowLoop& loop : flow->loops) {
    if (checker.may_wait(loop))
      return where + "a loop may wait for another block (volatile, acquire or atomic read of global memory)";
  }
  return {};
}

}  // namespace

Refused refuse_waiting_blocks(Kernel& kernel) {
  if (Refused reason = check_function(kernel, kernel.original.name)) return reason;
  for (const std::string& name : kernel.closure.functions) {
    if (Refused reason = check_function(kernel, name)) return reason;
  }
  return {};
}

}  // namespace gpuctl::ptx::pass
