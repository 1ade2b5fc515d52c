#include "ptx/pass/replace_returns.h"

#include "ptx/opcode.h"
#include "ptx/walk.h"

namespace gpuctl::ptx::pass {
namespace {

void jump_instead(std::vector<Statement>& body, const char* label) {
  for_each_instruction(body, [&](Instruction& instruction) {
    if (opcode_kind(instruction.opcode) != OpcodeKind::kReturn) return;
    instruction.opcode = "bra";  // `ret.uni` stays `bra.uni`
    instruction.operands = {symbol_operand(label)};
  });
}

}  // namespace

Refused replace_returns(Kernel& kernel) {
  jump_instead(*kernel.entry.body, kTaskEnd);
  if (kernel.plain_body) jump_instead(*kernel.plain_body, kPlainTaskEnd);
  return {};
}

}  // namespace gpuctl::ptx::pass
