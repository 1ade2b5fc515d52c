#include "ptx/pass/meet_late.h"

#include <algorithm>
#include <utility>

#include "ptx/analysis/flow.h"
#include "ptx/analysis/walk.h"
#include "ptx/syntax/opcode.h"

namespace gpuctl::ptx::pass {
namespace {

/// Whether the instruction may read or write shared memory, or wait for other threads of the block.
bool needs_meeting(const Instruction& i) {
  const bool elsewhere = (i.has("global") || i.has("param") || i.has("const") || i.has("local")) && !i.has("shared") &&
                         !i.has("shared::cta");
  switch (opcode_kind(i.opcode)) {
    case OpcodeKind::kCompute:
    case OpcodeKind::kBranch:
    case OpcodeKind::kReturn:
    case OpcodeKind::kTrap:
      return false;
    case OpcodeKind::kWarp:
      return i.opcode == "wmma";
    case OpcodeKind::kLoad:
      return !elsewhere && i.opcode != "tex" && i.opcode != "tld4" && i.opcode != "suld";
    case OpcodeKind::kAtomic:
    case OpcodeKind::kEffect:
      return !elsewhere;
    default:
      return true;
  }
}

bool is_crossing(const Instruction& i) {
  return i.opcode == "bra" && i.operands.size() == 1 && i.operands[0].text == kCrossing;
}

/// Finds the latest instruction in front of which all threads can meet.
class MeetingPlace {
 public:
  explicit MeetingPlace(const Flow& flow) : flow_(flow) {}

  const Instruction* run() const {
    if (flow_.irreducible) return nullptr;
    const Instruction* best = nullptr;
    for (int at = 0; at >= 0 && at != flow_.exit(); at = flow_.post_dominator[at]) {
      const auto& instructions = flow_.blocks[at].instructions;
      const auto first = std::find_if(instructions.begin(), instructions.end(),
                                      [](const FlowInstruction& i) { return needs_meeting(*i.instruction); });
      const bool goes_on = first == instructions.end();
      if (!instructions.empty() && !in_loop(at)) best = (goes_on ? instructions.back() : *first).instruction;
      if (!goes_on || !region_is_free(at)) break;
    }
    return best;
  }

 private:
  bool in_loop(int block) const {
    return std::any_of(flow_.loops.begin(), flow_.loops.end(),
                       [&](const FlowLoop& loop) { return loop.contains[block] != 0; });
  }

  bool region_is_free(int block) const {
    const std::vector<char> region = flow_.region(block);
    for (std::size_t b = 0; b < region.size(); ++b) {
      if (!region[b]) continue;
      for (const FlowInstruction& i : flow_.blocks[b].instructions)
        if (needs_meeting(*i.instruction)) return false;
    }
    return true;
  }

  const Flow& flow_;
};

Instruction barrier() {
  Instruction result;
  result.opcode = "bar";
  result.modifiers = {"sync"};
  result.operands = {zero_operand()};
  return result;
}

}  // namespace

Refused meet_late(Kernel& kernel) {
  const bool shares = kernel.report.uses_shared || kernel.report.uses_barrier;
  if (!shares || kernel.meets_at_branch || (kernel.report.needs_finished_barrier && !kernel.plain_body)) return {};
  std::vector<Statement>& body = kernel.plain_body ? *kernel.plain_body : *kernel.entry.body;

  // Threads that cross over to the other body meet there. So for this search the crossing is not a path around the
  // place, nor a path to anywhere in this body.
  Function function = kernel.entry;
  function.body = body;
  for_each_instruction(*function.body, [](Instruction& i) {
    if (!is_crossing(i)) return;
    i.guard.reset();
    i.opcode = "mov";
    i.modifiers = {"pred"};
    i.operands = {register_operand(kSomeoneRegister), register_operand(kSomeoneRegister)};
  });
  const Result<Flow> flow = build_flow(function);
  const Instruction* place = flow ? MeetingPlace(*flow).run() : nullptr;
  if (place == nullptr) return {};

  std::size_t number = 0, at = 0;
  for_each_instruction(std::as_const(*function.body), [&](const Instruction& i) {
    if (&i == place) at = number;
    ++number;
  });
  number = 0;
  replace_instructions(body, [&](Instruction& i, std::vector<Statement>& out) {
    if (number++ == at) out.emplace_back(barrier());
    out.emplace_back(std::move(i));
  });
  kernel.meets_inside = true;
  return {};
}

}  // namespace gpuctl::ptx::pass
