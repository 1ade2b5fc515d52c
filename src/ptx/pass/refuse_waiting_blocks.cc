#include "ptx/pass/refuse_waiting_blocks.h"

#include <map>

#include "ptx/analysis/memory_use.h"
#include "ptx/waiting/memory_flow.h"
#include "ptx/waiting/waiting_loop.h"

namespace gpuctl::ptx::pass {
namespace {

/// Whether reads in loops that are not understood, or in a recursion, must be taken for waiting.
bool shows_waiting(std::uint16_t memory) {
  return (memory & kReadsOthers) != 0 || ((memory & kReadsPlain) != 0 && (memory & kFencesGrid) != 0);
}

struct Finding {
  BlocksWait wait = BlocksWait::kNo;
  std::string reason;
};

Finding look_at(const Kernel& kernel, const std::string& name) {
  const Function& function = *kernel.facts.find(name)->function;
  const std::string where = function.is_entry ? "" : "calls '" + name + "': ";
  const Result<MemoryFlow> memory = build_memory_flow(kernel.facts, function);
  if (!memory) return {BlocksWait::kUnknown, where + memory.error().message};
  const Closure& closure = kernel.facts.closure(name);
  const std::uint16_t uses = closure.memory | (closure.calls_indirectly ? kernel.closure.memory : 0);
  if ((uses & (kReadsOthers | kReadsPlain)) == 0) return {};
  if (memory->flow.irreducible && shows_waiting(uses))
    return {BlocksWait::kYes, where + "reads memory shared with other blocks in a loop with several entries"};
  if (closure.functions.count(name) != 0 && shows_waiting(uses))
    return {BlocksWait::kYes, where + "reads memory shared with other blocks in a recursion"};
  std::map<int, const FlowLoop*> loops;
  for (const FlowLoop& loop : memory->flow.loops) loops[loop.header] = &loop;  // the last one holds the others
  for (const auto& [header, loop] : loops) {
    if (may_wait(*memory, *loop)) return {BlocksWait::kYes, where + kMayWaitForBlock};
  }
  return {};
}

}  // namespace

void find_waiting_blocks(Kernel& kernel) {
  Finding found = look_at(kernel, kernel.original.name);
  for (const std::string& name : kernel.closure.functions) {
    if (found.wait == BlocksWait::kYes) break;
    if (Finding next = look_at(kernel, name); next.wait != BlocksWait::kNo) found = std::move(next);
  }
  const bool in_sight = kernel.closure.whole && (kernel.closure.memory & kUnreadable) == 0;
  if (found.wait == BlocksWait::kNo && !in_sight) found.wait = BlocksWait::kUnknown;
  kernel.report.blocks_wait = found.wait;
  if (!found.reason.empty()) kernel.waits = std::move(found.reason);
}

Refused refuse_waiting_blocks(Kernel& kernel) {
  return kernel.waits;
}

}  // namespace gpuctl::ptx::pass
