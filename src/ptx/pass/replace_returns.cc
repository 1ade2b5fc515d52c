#include "ptx/pass/replace_returns.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>

#include "ptx/analysis/walk.h"
#include "ptx/syntax/opcode.h"

namespace gpuctl::ptx::pass {
namespace {

/// ptxas may put up to this many instructions at the end of a body under a predicate, instead of a branch around them.
constexpr int kFew = 12;

bool leaves(const Instruction& i, const std::set<std::string>& ends) {
  return i.guard &&
         (opcode_kind(i.opcode) == OpcodeKind::kReturn || (i.opcode == "bra" && ends.count(i.operands[0].text) != 0));
}

bool waits_for_others(const Statement& statement) {
  const auto* i = std::get_if<Instruction>(&statement);
  return i != nullptr && is_barrier(*i);
}

bool is_access(const Instruction& i) {
  const OpcodeKind kind = opcode_kind(i.opcode);
  return (kind == OpcodeKind::kLoad || kind == OpcodeKind::kAtomic || kind == OpcodeKind::kEffect) && !i.has("param");
}

Instruction event() {
  Instruction result;
  result.opcode = "pmevent";
  result.operands = {zero_operand()};
  return result;
}

// Often a few threads of a block do something more after its last barrier; for example, one thread stores what all have
// computed. In the original form the other threads exit at that point. If a jump to the end of the block-task replaces
// the exit, ptxas makes all warps execute these instructions under a predicate, and wait for their operands (0.015 of
// the time of reduction). ptxas keeps a branch around an instruction that counts an event, so one is inserted.
void keep_last_branch(std::vector<Statement>& body) {
  std::set<std::string> ends;
  int few = -1;  // the return itself
  bool touches_memory = false;
  for (std::size_t at = body.size(); at-- > 0 && few < kFew;) {
    if (const auto* label = std::get_if<Label>(&body[at])) {
      if (few > 0) return;  // others come here as well
      ends.insert(label->name);
      continue;
    }
    const auto* i = std::get_if<Instruction>(&body[at]);
    if (i == nullptr) return;
    if (few >= 0 && leaves(*i, ends)) {
      const auto here = body.begin() + static_cast<std::ptrdiff_t>(at);
      if (touches_memory && std::any_of(body.begin(), here, waits_for_others)) body.insert(here + 1, event());
      return;
    }
    const OpcodeKind kind = opcode_kind(i->opcode);
    if (kind == OpcodeKind::kBranch || (kind == OpcodeKind::kReturn && few >= 0)) return;
    touches_memory = touches_memory || is_access(*i);
    ++few;
  }
}

void jump_instead(std::vector<Statement>& body, const char* label) {
  for_each_instruction(body, [&](Instruction& instruction) {
    if (opcode_kind(instruction.opcode) != OpcodeKind::kReturn) return;
    instruction.opcode = "bra";  // `ret.uni` stays `bra.uni`
    instruction.operands = {symbol_operand(label)};
  });
}

}  // namespace

Refused replace_returns(Kernel& kernel) {
  keep_last_branch(*kernel.entry.body);
  if (kernel.plain_body) keep_last_branch(*kernel.plain_body);
  jump_instead(*kernel.entry.body, kTaskEnd);
  if (kernel.plain_body) jump_instead(*kernel.plain_body, kPlainTaskEnd);
  return {};
}

}  // namespace gpuctl::ptx::pass
