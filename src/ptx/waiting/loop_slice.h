// What decides about the end of a loop: the conditions of its branches, and what they are computed from inside it.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

#include "ptx/waiting/memory_flow.h"

namespace gpuctl::ptx {

/// What an instruction inside a loop brings into it.
enum class Brings : std::uint8_t {
  kNothing,
  kPlain,   ///< what other blocks may write, by a load that says nothing of it
  kOthers,  ///< what other blocks write, by a load that says so or by an atomic
  kChange,  ///< another value each time by the loop's own doing
};

/// One comparison, or one value, that a branch depends on. A branch on `a and b` has two.
struct Condition {
  std::vector<char> from;  ///< by register: it is computed from this one
  Brings brings = Brings::kNothing;
  bool changes = false;         ///< it is computed from a value that changes by the loop's own doing
  bool through_shared = false;  ///< a value passes from thread to thread
};

struct Decision {
  bool leaves = false;  ///< one way of the branch leaves the loop
  std::vector<Condition> conditions;
};

/// One loop with everything about it that does not depend on the way round it.
class LoopSlice {
 public:
  LoopSlice(const MemoryFlow& memory, const FlowLoop& loop);

  const Flow& flow() const { return memory_.flow; }
  const FlowLoop& loop() const { return loop_; }
  /// The loop shows that it reads what other blocks write while it runs.
  bool awaits() const { return awaits_; }
  /// Nothing in it reads memory that other blocks can write.
  bool reads_nothing() const { return reads_nothing_; }
  Brings brings(const FlowInstruction& i) const;
  /// It is a variable in shared or local memory, not a register.
  bool is_memory(int reg) const { return memory_.is_memory[static_cast<std::size_t>(reg)] != 0; }
  /// There are lock-free updates in it.
  bool tries() const { return !retries_.empty(); }
  /// It is a parameter of a call, which is stored to before each.
  bool is_call_param(int reg) const { return memory_.is_call_param[static_cast<std::size_t>(reg)] != 0; }
  /// Ends the loop unless another thread has changed what it tries to swap.
  bool ends_by_retry(const FlowInstruction& i) const;

  /// Of the branch at the end of this block, which has several ways on inside the loop or out of it.
  Decision decision(int block) const;

 private:
  struct Place {
    int block;
    const FlowInstruction* instruction;
  };

  void find_retries();
  bool is_retry(const Instruction& cas) const;
  bool tests_retry(const Instruction& test) const;
  bool writes_itself(const Instruction& load, const Access& access) const;
  Brings brings_of(const FlowInstruction& i) const;
  void find_inner_branches();
  struct Parts {
    std::vector<std::vector<int>> lists;  ///< each: the registers of one condition
    std::set<int> seen;
  };
  void expand(int reg, Parts& parts) const;
  void expand_setp(const Place& place, Parts& parts) const;
  Condition slice(const std::vector<int>& inputs) const;
  void follow(const std::vector<int>& inputs, bool through_control, Condition& out) const;

  const MemoryFlow& memory_;
  const FlowLoop& loop_;
  std::vector<std::vector<Place>> writers_;  ///< by register: inside the loop
  std::vector<const Instruction*> retries_;
  std::vector<const Instruction*> stores_;
  std::unordered_map<const Instruction*, Brings> brings_;
  std::vector<std::vector<int>>
      controls_;  ///< by block: registers of the branches inside the loop that decide about it
  std::uint16_t uses_ = 0;
  bool awaits_ = false;
  bool reads_nothing_ = true;
};

}  // namespace gpuctl::ptx
