#include "ptx/pass/join_finished_threads.h"

#include "ptx/opcode.h"
#include "ptx/parser.h"
#include "ptx/walk.h"

namespace gpuctl::ptx::pass {
namespace {

void join_barriers(Function& function) {
  for_each_instruction(*function.body, [](Instruction& instruction) {
    if (!is_block_barrier(instruction)) return;
    instruction.opcode = "barrier";
    instruction.modifiers = {"red", "popc", "u32"};
    Operand zero = instruction.operands[0];
    instruction.operands = {register_operand(kCountRegister), std::move(zero), register_operand(kNobodyRegister)};
  });
}

/// The registers the barriers above use, set at the start of the body.
void declare_registers(Function& function) {
  const std::string count = kCountRegister;
  const std::string nobody = kNobodyRegister;
  const auto module = parse(".version 6.0 .target sm_70 .address_size 64 .func f() { .reg .b32 " + count + "; .reg .pred " + nobody +
                            "; setp.ne.u32 " + nobody + ", 0, 0; }");
  std::vector<Statement> head = *std::get<Function>(module->items[0]).body;
  std::move(function.body->begin(), function.body->end(), std::back_inserter(head));
  function.body = std::move(head);
}

}  // namespace

Refused join_finished_threads(Kernel& kernel) {
  if (!kernel.report.needs_finished_barrier) return {};
  join_barriers(kernel.entry);
  for (CopiedFunction& copy : kernel.functions) {
    if (!kernel.facts.closure(copy.original).has_barrier) continue;
    join_barriers(copy.function);
    declare_registers(copy.function);
  }
  return {};
}

}  // namespace gpuctl::ptx::pass
