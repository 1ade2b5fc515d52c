#include "ptx/pass/copied_functions.h"

#include "ptx/analysis/walk.h"
#include "ptx/syntax/opcode.h"

namespace gpuctl::ptx::pass {
namespace {

bool must_copy(const Kernel& kernel, const std::string& name) {
  const Closure& closure = kernel.facts.closure(name);
  return closure.grid_reads != 0 || (kernel.report.needs_finished_barrier && closure.has_barrier);
}

/// Kernels share copies that are equal. Two copies differ only in whether finished threads join their barriers.
std::string copy_name(const Kernel& kernel, const std::string& name) {
  const bool joins = kernel.report.needs_finished_barrier && kernel.facts.closure(name).has_barrier;
  return name + kPersistentSuffix + (joins ? "_joined" : "");
}

}  // namespace

void copy_functions(Kernel& kernel) {
  std::map<std::string, std::string, std::less<>> names;
  for (const std::string& name : kernel.closure.functions) {
    if (!must_copy(kernel, name)) continue;
    CopiedFunction copy{name, *kernel.facts.find(name)->function};
    copy.function.name = copy_name(kernel, name);
    copy.function.linkage.clear();  // visible in this module only
    names[name] = copy.function.name;
    kernel.functions.push_back(std::move(copy));
  }
  const auto redirect = [&](Instruction& instruction) {
    if (instruction.opcode != "call") return;
    const auto found = names.find(call_target(instruction));
    if (found == names.end()) return;
    for (Operand& operand : instruction.operands) {
      if (operand.kind == Operand::Kind::kSymbol && operand.text == found->first) {
        operand.text = found->second;
        return;
      }
    }
  };
  for_each_instruction(*kernel.entry.body, redirect);
  if (kernel.plain_body) for_each_instruction(*kernel.plain_body, redirect);
  for (CopiedFunction& copy : kernel.functions) for_each_instruction(*copy.function.body, redirect);
}

std::uint8_t copied_call_reads(const Kernel& kernel, const Instruction& call) {
  const std::string_view target = call_target(call);
  for (const CopiedFunction& copy : kernel.functions) {
    if (copy.function.name == target) return kernel.facts.closure(copy.original).grid_reads;
  }
  return 0;
}

}  // namespace gpuctl::ptx::pass
