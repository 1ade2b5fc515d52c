#include "ptx/waiting/loop_slice.h"

#include <algorithm>
#include <string>

#include "ptx/analysis/memory_use.h"
#include "ptx/analysis/walk.h"
#include "ptx/syntax/opcode.h"

namespace gpuctl::ptx {
namespace {

bool has_register(const Operand& operand, const std::string& name) {
  return operand.kind == Operand::Kind::kRegister && operand.text == name;
}

bool same_address(const Instruction& a, const Instruction& b) {
  const Operand *one = address_of(a), *other = address_of(b);
  return one != nullptr && other != nullptr && one->offset == other->offset &&
         one->items[0].kind == other->items[0].kind && one->items[0].text == other->items[0].text;
}

}  // namespace

LoopSlice::LoopSlice(const MemoryFlow& memory, const FlowLoop& loop)
    : memory_(memory), loop_(loop), writers_(memory.flow.registers.size()), controls_(memory.flow.blocks.size()) {
  for (std::size_t b = 0; b < flow().blocks.size(); ++b) {
    if (!loop_.contains[b]) continue;
    for (const FlowInstruction& i : flow().blocks[b].instructions) {
      const auto access = memory_.accesses.find(i.instruction);
      if (access != memory_.accesses.end()) uses_ |= access->second.use;
    }
  }
  reads_nothing_ = (uses_ & (kReadsOthers | kReadsPlain)) == 0;
  if (reads_nothing_) return;
  awaits_ = (uses_ & (kReadsMarked | kFences)) != 0;
  for (std::size_t b = 0; b < flow().blocks.size(); ++b) {
    if (!loop_.contains[b]) continue;
    for (const FlowInstruction& i : flow().blocks[b].instructions) {
      for (const int reg : i.writes) writers_[static_cast<std::size_t>(reg)].push_back({static_cast<int>(b), &i});
    }
  }
  find_retries();
  for (std::size_t b = 0; b < flow().blocks.size(); ++b) {
    if (!loop_.contains[b]) continue;
    for (const FlowInstruction& i : flow().blocks[b].instructions) {
      const auto access = memory_.accesses.find(i.instruction);
      const bool swaps = std::find(retries_.begin(), retries_.end(), i.instruction) != retries_.end();
      if (access != memory_.accesses.end() && (access->second.use & kStoresGlobal) != 0 && !swaps)
        stores_.push_back(i.instruction);
    }
  }
  for (std::size_t b = 0; b < flow().blocks.size(); ++b) {
    if (!loop_.contains[b]) continue;
    for (const FlowInstruction& i : flow().blocks[b].instructions) {
      if (const Brings what = brings_of(i); what != Brings::kNothing) brings_[i.instruction] = what;
    }
  }
  find_inner_branches();
}

void LoopSlice::find_retries() {
  std::vector<const Instruction*> inside;
  for (std::size_t b = 0; b < flow().blocks.size(); ++b) {
    if (!loop_.contains[b]) continue;
    for (const FlowInstruction& i : flow().blocks[b].instructions) {
      if (i.instruction->opcode == "atom" && is_retry(*i.instruction)) inside.push_back(i.instruction);
    }
  }
  retries_ = std::move(inside);
}

/// atom.cas whose expected value is, inside the loop, the result of the previous try or a fresh plain load.
bool LoopSlice::is_retry(const Instruction& cas) const {
  if (!cas.has("cas") || cas.operands.size() < 4) return false;
  const Operand& result = cas.operands[0];
  const Operand& expected = cas.operands[2];
  if (result.kind != Operand::Kind::kRegister || expected.kind != Operand::Kind::kRegister) return false;
  bool renewed = false;
  for (const Place& place : writers_[static_cast<std::size_t>(flow().registers.at(expected.text))]) {
    const Instruction& writer = *place.instruction->instruction;
    if (&writer == &cas) continue;
    const bool copy = writer.opcode == "mov" && writer.operands.size() == 2 &&
                      has_register(writer.operands[0], expected.text) && has_register(writer.operands[1], result.text);
    const bool load = writer.opcode == "ld" && (memory_use(writer) & kReadsMarked) == 0 &&
                      has_register(writer.operands[0], expected.text);
    if (!copy && !load) return false;
    renewed = true;
  }
  return renewed;
}

/// `setp.eq/ne` of a retry's result with its own expected value.
bool LoopSlice::tests_retry(const Instruction& test) const {
  if (test.opcode != "setp" || test.operands.size() != 3 || (!test.has("eq") && !test.has("ne"))) return false;
  return std::any_of(retries_.begin(), retries_.end(), [&](const Instruction* cas) {
    const std::string& result = cas->operands[0].text;
    const std::string& expected = cas->operands[2].text;
    return (has_register(test.operands[1], result) && has_register(test.operands[2], expected)) ||
           (has_register(test.operands[1], expected) && has_register(test.operands[2], result));
  });
}

/// Whether the loop may store to what this load reads. Then its own doing may change the value.
bool LoopSlice::writes_itself(const Instruction& load, const Access& access) const {
  return std::any_of(stores_.begin(), stores_.end(), [&](const Instruction* store) {
    const Access& other = memory_.accesses.at(store);
    if (store->opcode == "st" && load.opcode == "ld" && same_address(*store, load)) return true;
    const bool apart = !access.root.empty() && !other.root.empty() && access.root != other.root;
    return !apart && (uses_ & kFencesGrid) == 0;
  });
}

Brings LoopSlice::brings_of(const FlowInstruction& i) const {
  const auto found = memory_.accesses.find(i.instruction);
  if (found == memory_.accesses.end()) return Brings::kNothing;
  const Access& access = found->second;
  if (std::find(retries_.begin(), retries_.end(), i.instruction) != retries_.end()) return Brings::kChange;
  if ((access.use & kReadsOthers) != 0) return Brings::kOthers;
  if ((access.use & kReadsPlain) != 0) return writes_itself(*i.instruction, access) ? Brings::kChange : Brings::kPlain;
  return (access.use & kCounts) != 0 ? Brings::kChange : Brings::kNothing;
}

Brings LoopSlice::brings(const FlowInstruction& i) const {
  const auto found = brings_.find(i.instruction);
  return found == brings_.end() ? Brings::kNothing : found->second;
}

/// A branch decides about the blocks on one side of it, but not by leaving the loop: who is still in it has not left.
void LoopSlice::find_inner_branches() {
  for (std::size_t b = 0; b < flow().blocks.size(); ++b) {
    const FlowBlock& block = flow().blocks[b];
    if (!loop_.contains[b] || block.successors.size() < 2 || block.instructions.empty()) continue;
    if (std::any_of(block.successors.begin(), block.successors.end(),
                    [&](int to) { return !loop_.contains[static_cast<std::size_t>(to)]; }))
      continue;
    const std::vector<char> region = flow().region(static_cast<int>(b));
    for (std::size_t inside = 0; inside < region.size(); ++inside) {
      if (!region[inside] || !loop_.contains[inside]) continue;
      auto& controls = controls_[inside];
      const auto& reads = block.instructions.back().reads;
      controls.insert(controls.end(), reads.begin(), reads.end());
    }
  }
}

bool LoopSlice::ends_by_retry(const FlowInstruction& i) const {
  const std::vector<int>& reads = i.reads;
  if (retries_.empty() || reads.empty()) return false;
  const auto& writers = writers_[static_cast<std::size_t>(reads[0])];
  return std::any_of(writers.begin(), writers.end(),
                     [&](const Place& place) { return tests_retry(*place.instruction->instruction); });
}

/// Appends the parts of which this truth value is made: each is a list of registers.
void LoopSlice::expand(int reg, Parts& parts) const {
  const auto& writers = writers_[static_cast<std::size_t>(reg)];
  if (!parts.seen.insert(reg).second) return;
  bool whole = writers.empty();
  for (const Place& place : writers) {
    const Instruction& i = *place.instruction->instruction;
    if (tests_retry(i)) continue;
    const bool joins = is_one_of(i, {"and", "or", "xor", "not", "mov", "selp", "cvt", "vote"});
    if (i.opcode == "setp") {
      expand_setp(place, parts);
    } else if (joins && !i.guard && !place.instruction->reads.empty()) {
      for (const int part : place.instruction->reads) expand(part, parts);
    } else {
      whole = true;
    }
  }
  if (whole || writers.size() > 1) parts.lists.push_back({reg});
}

void LoopSlice::expand_setp(const Place& place, Parts& parts) const {
  const Instruction& i = *place.instruction->instruction;
  std::vector<int> inputs = place.instruction->reads;
  if (i.operands.size() == 4 && i.operands[3].kind == Operand::Kind::kRegister && !inputs.empty()) {
    expand(inputs.back(), parts);
    inputs.pop_back();
  }
  // A truth value that was held in a word.
  const bool of_word = i.operands.size() >= 3 && i.operands[2].kind == Operand::Kind::kImmediate &&
                       (i.has("eq") || i.has("ne")) && i.operands[1].kind == Operand::Kind::kRegister && !i.guard;
  if (of_word) {
    const auto& writers = writers_[static_cast<std::size_t>(inputs[0])];
    const bool joined = writers.size() == 1 && !writers[0].instruction->instruction->guard &&
                        is_one_of(*writers[0].instruction->instruction, {"and", "or", "selp", "cvt", "mov", "vote"});
    if (joined) return expand(inputs[0], parts);
  }
  parts.lists.push_back(std::move(inputs));
}

void LoopSlice::follow(const std::vector<int>& inputs, bool through_control, Condition& out) const {
  std::vector<int> work = inputs;
  std::vector<char> seen_block(flow().blocks.size(), 0);
  while (!work.empty()) {
    const auto reg = static_cast<std::size_t>(work.back());
    work.pop_back();
    if (out.from[reg]) continue;
    out.from[reg] = 1;
    out.through_shared = out.through_shared || memory_.is_shared[reg] != 0;
    for (const Place& place : writers_[reg]) {
      const FlowInstruction& i = *place.instruction;
      if (tests_retry(*i.instruction)) continue;
      const Brings what = brings(i);
      out.changes = out.changes || what == Brings::kChange;
      if (what != Brings::kChange) out.brings = std::max(out.brings, what);
      std::size_t from = 0, to = i.reads.size();
      if (!through_control && i.instruction->guard) from = 1;
      if (!through_control && i.instruction->opcode == "selp" && to > from) --to;
      work.insert(work.end(), i.reads.begin() + static_cast<std::ptrdiff_t>(from),
                  i.reads.begin() + static_cast<std::ptrdiff_t>(to));
      if (!through_control || std::exchange(seen_block[static_cast<std::size_t>(place.block)], 1) != 0) continue;
      const auto& controls = controls_[static_cast<std::size_t>(place.block)];
      work.insert(work.end(), controls.begin(), controls.end());
    }
  }
}

Condition LoopSlice::slice(const std::vector<int>& inputs) const {
  Condition all;
  all.from.assign(writers_.size(), 0);
  follow(inputs, true, all);
  if (!awaits_) return all;
  Condition data;
  data.from.assign(writers_.size(), 0);
  follow(inputs, false, data);
  data.brings = all.brings;
  return data;
}

Decision LoopSlice::decision(int block) const {
  const FlowBlock& from = flow().blocks[static_cast<std::size_t>(block)];
  Decision result;
  result.leaves = std::any_of(from.successors.begin(), from.successors.end(),
                              [&](int to) { return !loop_.contains[static_cast<std::size_t>(to)]; });
  Parts parts;
  for (const int reg : from.instructions.back().reads) expand(reg, parts);
  for (const std::vector<int>& part : parts.lists) result.conditions.push_back(slice(part));
  return result;
}

}  // namespace gpuctl::ptx
