#include "ptx/waiting/waiting_loop.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ptx/analysis/walk.h"
#include "ptx/syntax/opcode.h"
#include "ptx/syntax/printer.h"
#include "ptx/waiting/loop_slice.h"

namespace gpuctl::ptx {
namespace {

constexpr std::size_t kMostCarried = 64;      // values that pass from one round to the next, one bit each
constexpr std::size_t kMostValues = 2000;     // that decide
constexpr int kMostSteps = 2000;              // blocks that are looked at on all ways round a loop
constexpr std::size_t kMostWork = 4'000'000;  // values and blocks that are copied where ways part

using Carried = std::uint64_t;  // one bit for each such value

/// A value, by what it is computed from.
struct Value {
  Carried same = 0;     ///< it is this value as it was when the round began
  Carried stepped = 0;  ///< it is another value than these were
  Carried mixed = 0;    ///< it may be the same as before even where these are computed into it
  bool changes = false;
  bool from_others = false;  ///< it may stay the same until another block writes
  bool written = false;
  bool zero = false;

  Carried all() const { return same | stepped | mixed; }
};

/// Where a way round the loop has come to.
struct Round {
  std::vector<Value> values;  ///< by number of Rounds::numbers_
  std::vector<char> passed;   ///< by block
  std::map<int, bool> chosen;
  std::vector<int> leaving, inner;  ///< blocks whose branches it passed
};

class Rounds {
 public:
  explicit Rounds(const LoopSlice& slice) : slice_(slice), flow_(slice.flow()), numbers_(flow_.registers.size(), -1) {}

  bool may_wait() {
    bool any = false;
    for (std::size_t b = 0; b < flow_.blocks.size(); ++b) {
      if (!inside(static_cast<int>(b)) || flow_.blocks[b].successors.size() < 2 || flow_.blocks[b].instructions.empty())
        continue;
      const auto& decision = decisions_[static_cast<int>(b)] = slice_.decision(static_cast<int>(b));
      for (const Condition& condition : decision.conditions) any = any || condition.brings != Brings::kNothing;
    }
    if (!any) return false;
    number_registers();
    if (count_ > kMostValues || !find_carried()) return too_much();
    if (stands_still()) return true;
    Round round;
    round.values.resize(count_);
    for (const auto& [reg, bit] : carried_) round.values[number(reg)].same = Carried{1} << bit;
    round.passed.assign(flow_.blocks.size(), 0);
    walk(slice_.loop().header, 0, std::move(round));
    if (!waits_ && gave_up()) return too_much();
    return waits_ || std::any_of(leaders_.begin(), leaders_.end(), [&](Carried from) { return (from & moved_) == 0; });
  }

 private:
  bool inside(int block) const { return slice_.loop().contains[static_cast<std::size_t>(block)] != 0; }
  std::size_t number(int reg) const { return static_cast<std::size_t>(numbers_[static_cast<std::size_t>(reg)]); }
  bool counts(int reg) const { return numbers_[static_cast<std::size_t>(reg)] >= 0; }

  /// The answer where there are more ways round than can be looked at.
  bool too_much() const {
    for (const auto& [block, decision] : decisions_) {
      for (const Condition& condition : decision.conditions) {
        if (decision.leaves && condition.brings == Brings::kOthers && !condition.changes) return true;
      }
    }
    return false;
  }

  bool gave_up() const { return steps_ > kMostSteps || work_ > kMostWork; }
  Round copy_of(const Round& round) {
    work_ += round.values.size() + round.passed.size();
    return round;
  }

  /// What decides does not change on any way round.
  bool stands_still() const {
    return std::any_of(decisions_.begin(), decisions_.end(), [&](const auto& entry) {
      const Decision& decision = entry.second;
      if (!decision.leaves || slice_.tries()) return false;
      return std::any_of(decision.conditions.begin(), decision.conditions.end(), [&](const Condition& condition) {
        const bool others =
            condition.brings == Brings::kOthers || (condition.brings != Brings::kNothing && slice_.awaits());
        return others && !condition.changes && carried_in(condition) == 0;
      });
    });
  }

  void number_registers() {
    for (const auto& [block, decision] : decisions_) {
      for (const Condition& condition : decision.conditions) {
        if (condition.brings == Brings::kNothing && !decision.leaves) continue;
        for (std::size_t reg = 0; reg < condition.from.size(); ++reg) {
          if (condition.from[reg] && numbers_[reg] < 0) numbers_[reg] = static_cast<int>(count_++);
        }
      }
    }
  }

  /// Registers that are read in a round before it writes them, and that it writes. False if they are too many.
  bool find_carried() {
    std::vector<std::vector<char>> live(flow_.blocks.size(), std::vector<char>(count_, 0));
    std::vector<char> written(count_, 0);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t b = flow_.blocks.size(); b-- > 0;) {
        if (!inside(static_cast<int>(b))) continue;
        std::vector<char> now(count_, 0);
        for (const int to : flow_.blocks[b].successors) {
          if (!inside(to) || to == slice_.loop().header) continue;
          for (std::size_t r = 0; r < count_; ++r) now[r] |= live[static_cast<std::size_t>(to)][r];
        }
        const auto& instructions = flow_.blocks[b].instructions;
        for (auto i = instructions.rbegin(); i != instructions.rend(); ++i) {
          for (const int reg : i->writes) {
            if (!counts(reg)) continue;
            written[number(reg)] = 1;
            if (!i->instruction->guard) now[number(reg)] = 0;
          }
          for (const int reg : i->reads) {
            if (counts(reg)) now[number(reg)] = 1;
          }
        }
        changed = changed || now != live[b];
        live[b] = std::move(now);
      }
    }
    const auto& at_header = live[static_cast<std::size_t>(slice_.loop().header)];
    for (std::size_t reg = 0; reg < numbers_.size(); ++reg) {
      if (!counts(static_cast<int>(reg)) || slice_.is_call_param(static_cast<int>(reg))) continue;
      const std::size_t n = number(static_cast<int>(reg));
      if (at_header[n] && written[n]) carried_.emplace_back(static_cast<int>(reg), carried_.size());
    }
    return carried_.size() <= kMostCarried;
  }

  /// Goes on from an instruction of a block to the end of the round, on every way.
  void walk(int block, std::size_t at, Round round) {
    for (;;) {
      ++steps_;
      if (waits_ || gave_up()) return;
      const FlowBlock& here = flow_.blocks[static_cast<std::size_t>(block)];
      round.passed[static_cast<std::size_t>(block)] = 1;
      for (; at < here.instructions.size(); ++at) {
        if (!step(block, at, round)) return;  // the ways on were walked
      }
      if (const auto found = decisions_.find(block); found != decisions_.end()) {
        if (found->second.leaves && slice_.ends_by_retry(here.instructions.back())) return;
        (found->second.leaves ? round.leaving : round.inner).push_back(block);
      }
      std::vector<int> on;
      for (const int to : here.successors) {
        if (to == slice_.loop().header) judge(round);
        if (inside(to) && !round.passed[static_cast<std::size_t>(to)]) on.push_back(to);
      }
      if (on.empty()) return;
      for (std::size_t i = 1; i < on.size(); ++i) walk(on[i], 0, copy_of(round));
      block = on[0];
      at = 0;
    }
  }

  /// False if the rest of the way depends on a predicate: then both ways on have been walked.
  bool step(int block, std::size_t at, Round& round) {
    const FlowInstruction& i = flow_.blocks[static_cast<std::size_t>(block)].instructions[at];
    if (std::none_of(i.writes.begin(), i.writes.end(), [&](int reg) { return counts(reg); })) return true;
    const bool selects = i.instruction->opcode == "selp" && i.instruction->operands.size() == 4 &&
                         i.instruction->operands[3].kind == Operand::Kind::kRegister;
    const auto& operands = i.instruction->operands;
    const bool same = selects && !i.instruction->guard && print(operands[1]) == print(operands[2]);
    if (same || (!selects && !i.instruction->guard)) {
      write(i, combine(i, round), round);
      return true;
    }
    const int predicate = selects ? i.reads.back() : i.reads[0];
    const auto known = round.chosen.find(predicate);
    if (known == round.chosen.end()) {
      for (const bool is : {false, true}) {
        Round other = copy_of(round);
        other.chosen[predicate] = is;
        walk(block, at, std::move(other));
      }
      return false;
    }
    if (selects) {
      write(i, of_operand(operands[known->second ? 1 : 2], round), round);
    } else if (known->second != i.instruction->guard->negated) {
      write(i, combine(i, round), round);
    }
    return true;
  }

  void write(const FlowInstruction& i, Value value, Round& round) const {
    value.written = true;
    Value kept = value;  // of memory to which a called function may write, or not
    kept.mixed |= kept.same | std::exchange(kept.stepped, 0);
    kept.same = 0;
    const bool call = reads_for_caller(i);
    for (const int reg : i.writes) {
      if (counts(reg)) round.values[number(reg)] = call && slice_.is_memory(reg) ? kept : value;
      round.chosen.erase(reg);
    }
  }

  Value of_operand(const Operand& operand, const Round& round) const {
    if (operand.kind == Operand::Kind::kImmediate) return {.zero = operand.bits == 0};
    if (operand.kind != Operand::Kind::kRegister) return {};
    const int reg = flow_.registers.at(operand.text);
    return counts(reg) ? round.values[number(reg)] : Value{};
  }

  /// A called function that reads what other blocks write may read and write variables in memory too, but what it makes
  /// of them is not for certain another value each time.
  bool reads_for_caller(const FlowInstruction& i) const {
    const Brings brings = slice_.brings(i);
    return i.instruction->opcode == "call" && (brings == Brings::kPlain || brings == Brings::kOthers);
  }

  /// An addition of a register that is 0 here: the other operand; null: it is none.
  const Operand* unchanged(const Instruction& i, const Round& round) const {
    if (!is_one_of(i, {"add", "sub", "or", "xor"}) || i.operands.size() != 3) return nullptr;
    const auto is_zero = [&](const Operand& o) {
      return o.kind == Operand::Kind::kRegister && of_operand(o, round).zero;
    };
    if (is_zero(i.operands[2])) return &i.operands[1];
    return i.opcode != "sub" && is_zero(i.operands[1]) ? &i.operands[2] : nullptr;
  }

  Value combine(const FlowInstruction& i, const Round& round) const {
    if (const Operand* other = unchanged(*i.instruction, round)) return of_operand(*other, round);
    if (i.instruction->opcode == "mov" && i.instruction->operands.size() == 2 &&
        i.instruction->operands[1].kind == Operand::Kind::kImmediate)
      return of_operand(i.instruction->operands[1], round);
    const Brings brings = slice_.brings(i);
    const bool for_caller = reads_for_caller(i);
    Value all;
    Carried maybe = 0;
    int with_any = 0;
    bool unsure = false;
    for (std::size_t r = i.instruction->guard ? 1 : 0; r < i.reads.size(); ++r) {
      if (!counts(i.reads[r])) continue;
      const Value& one = round.values[number(i.reads[r])];
      if (for_caller && slice_.is_memory(i.reads[r])) {
        maybe |= one.all();
        continue;
      }
      with_any += one.all() != 0 ? 1 : 0;
      unsure = unsure || (one.from_others && one.all() == 0);
      all.same |= one.same;
      all.stepped |= one.stepped;
      all.mixed |= one.mixed;
      all.changes |= one.changes;
      all.from_others |= one.from_others;
    }
    const OpcodeKind kind = opcode_kind(i.instruction->opcode);
    const bool moves =
        is_one_of(*i.instruction, {"mov", "cvt", "cvta"}) || (i.instruction->has("param") && kind != OpcodeKind::kCall);
    all.changes |= brings == Brings::kChange;
    all.from_others |= brings == Brings::kPlain || brings == Brings::kOthers;
    if (moves && with_any <= 1) return all;
    const bool passes_on = is_one_of(*i.instruction, {"st", "cp", "mov", "vote"});
    const bool keeps = passes_on || unsure || is_one_of(*i.instruction, {"and", "or", "min", "max"});
    if (!slice_.awaits()) {
      all.stepped |= keeps ? 0 : all.same | std::exchange(all.mixed, 0);
    } else if (!keeps && is_one_of(*i.instruction, {"add", "sub", "mad"})) {
      all.stepped |= all.same;
    } else if (!passes_on) {
      all.mixed |= std::exchange(all.stepped, 0);
    }
    all.mixed |= (all.same & ~all.stepped) | maybe;
    all.same = 0;
    return all;
  }

  /// The carried values that are other ones after this round by the loop's own doing.
  Carried moved_by(const Round& round) const {
    const std::size_t n = carried_.size();
    std::vector<Carried> from(n), stepped(n);
    Carried moved = 0;
    for (std::size_t c = 0; c < n; ++c) {
      const Value& value = round.values[number(carried_[c].first)];
      from[c] = value.all();
      stepped[c] = value.stepped;
      // Another value as a rule, though the next round may compute the same again.
      const bool set = value.written && (value.stepped != 0 || (value.all() == 0 && !value.from_others));
      if (value.changes || (set && !slice_.awaits())) moved |= Carried{1} << c;
    }
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t c = 0; c < n; ++c) {
        if ((from[c] >> k & 1) != 0) from[c] |= from[k];
      }
    }
    for (std::size_t c = 0; c < n; ++c) {
      for (Carried left = stepped[c]; left != 0; left &= left - 1) {
        const int k = std::countr_zero(left);
        if (static_cast<std::size_t>(k) == c || (from[static_cast<std::size_t>(k)] >> c & 1) != 0)
          moved |= Carried{1} << c;
      }
    }
    Carried result = moved;
    for (std::size_t c = 0; c < n; ++c) {
      if ((from[c] & moved) != 0) result |= Carried{1} << c;
    }
    return result;
  }

  Carried carried_in(const Condition& condition) const {
    Carried result = 0;
    for (std::size_t c = 0; c < carried_.size(); ++c) {
      if (condition.from[static_cast<std::size_t>(carried_[c].first)]) result |= Carried{1} << c;
    }
    return result;
  }

  /// At the end of a round. Where a way leaves the loop, those branches decide; else those inside it.
  void judge(const Round& round) {
    const Carried moved = moved_by(round);
    moved_ |= moved;
    bool ends_by_itself = false, stalls = false;
    std::optional<Carried> leader;
    for (const int block : round.leaving.empty() ? round.inner : round.leaving) {
      const Decision& decision = decisions_.at(block);
      for (const Condition& condition : decision.conditions) {
        const Carried from = carried_in(condition);
        if (condition.changes || (from & moved) != 0) {
          ends_by_itself = ends_by_itself || decision.leaves;
        } else if (condition.brings == Brings::kOthers || (condition.brings == Brings::kPlain && slice_.awaits())) {
          waits_ = true;
        } else if (condition.brings == Brings::kPlain) {
          // One thread may walk on and tell the others, which come by another way.
          if (condition.through_shared)
            leader = from;
          else
            stalls = true;
        }
      }
    }
    if (ends_by_itself) return;
    if (stalls) waits_ = true;
    if (leader) leaders_.push_back(*leader);
  }

  const LoopSlice& slice_;
  const Flow& flow_;
  std::map<int, Decision> decisions_;
  std::vector<int> numbers_;  ///< by register: its number here; -1: nothing depends on it
  std::size_t count_ = 0;
  std::vector<std::pair<int, std::size_t>> carried_;  ///< register, bit
  int steps_ = 0;
  std::size_t work_ = 0;
  bool waits_ = false;
  Carried moved_ = 0;
  std::vector<Carried> leaders_;
};

}  // namespace

bool may_wait(const MemoryFlow& memory, const FlowLoop& loop) {
  const LoopSlice slice(memory, loop);
  return !slice.reads_nothing() && Rounds(slice).may_wait();
}

}  // namespace gpuctl::ptx
