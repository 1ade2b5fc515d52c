#include "ptx/definitions.h"

#include <algorithm>

namespace gpuctl::ptx {

Definitions::Definitions(const Flow& flow) : flow_(flow), by_register_(flow.registers.size()) {
  for (std::size_t b = 0; b < flow.blocks.size(); ++b) {
    const bool in_loop = flow.irreducible || std::any_of(flow.loops.begin(), flow.loops.end(),
                                                         [b](const FlowLoop& loop) { return loop.contains[b] != 0; });
    for (const FlowInstruction& i : flow.blocks[b].instructions) {
      for (const int written : i.writes) {
        Definition& known = by_register_.at(static_cast<std::size_t>(written));
        known.instruction = known.written || i.instruction->guard ? nullptr : i.instruction;
        known.written = true;
        known.in_loop = in_loop;
      }
    }
  }
}

const Definitions::Definition* Definitions::find(const std::string& name) const {
  const auto number = flow_.registers.find(name);
  return number == flow_.registers.end() ? nullptr : &by_register_.at(static_cast<std::size_t>(number->second));
}

const Instruction* Definitions::only(const std::string& name) const {
  const Definition* found = find(name);
  return found == nullptr ? nullptr : found->instruction;
}

const Instruction* Definitions::once(const std::string& name) const {
  const Definition* found = find(name);
  return found == nullptr || found->in_loop ? nullptr : found->instruction;
}

}  // namespace gpuctl::ptx
