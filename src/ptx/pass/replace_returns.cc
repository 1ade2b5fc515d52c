#include "ptx/pass/replace_returns.h"

#include "ptx/opcode.h"
#include "ptx/walk.h"

namespace gpuctl::ptx::pass {

Refused replace_returns(Kernel& kernel) {
  for_each_instruction(*kernel.entry.body, [](Instruction& instruction) {
    if (opcode_kind(instruction.opcode) != OpcodeKind::kReturn) return;
    instruction.opcode = "bra";  // `ret.uni` stays `bra.uni`
    instruction.operands = {symbol_operand(kTaskEnd)};
  });
  return {};
}

}  // namespace gpuctl::ptx::pass
