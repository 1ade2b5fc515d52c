#include "ptx/pass/announce_early_return.h"

#include "ptx/walk.h"

namespace gpuctl::ptx::pass {
namespace {

/// `bar.red.or.pred plain, 0, p; not.pred plain, plain;` where p is the condition under which `branch` lets a thread return.
void announce(const Instruction& branch, bool returns_if_taken, std::vector<Statement>& out) {
  Operand condition = register_operand(branch.guard->reg);
  if (branch.guard->negated == returns_if_taken) {
    Operand negated;
    negated.kind = Operand::Kind::kNegated;
    negated.text = "!";
    negated.items.push_back(std::move(condition));
    condition = std::move(negated);
  }
  Operand zero;
  zero.kind = Operand::Kind::kImmediate;
  zero.text = "0";
  Instruction reduce;
  reduce.opcode = "bar";
  reduce.modifiers = {"red", "or", "pred"};
  reduce.operands = {register_operand(kPlainRegister), std::move(zero), std::move(condition)};
  out.emplace_back(std::move(reduce));
  Instruction invert;
  invert.opcode = "not";
  invert.modifiers = {"pred"};
  invert.operands = {register_operand(kPlainRegister), register_operand(kPlainRegister)};
  out.emplace_back(std::move(invert));
}

}  // namespace

Refused announce_early_return(Kernel& kernel) {
  if (!kernel.return_branch) return {};
  std::size_t place = 0;
  replace_instructions(*kernel.entry.body, [&](Instruction& instruction, std::vector<Statement>& out) {
    if (place++ == kernel.return_branch->place) announce(instruction, kernel.return_branch->returns_if_taken, out);
    out.emplace_back(std::move(instruction));
  });
  return {};
}

}  // namespace gpuctl::ptx::pass
