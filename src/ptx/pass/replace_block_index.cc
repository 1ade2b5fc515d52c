#include "ptx/pass/replace_block_index.h"

#include <array>

#include "ptx/analysis/walk.h"
#include "ptx/pass/copied_functions.h"

namespace gpuctl::ptx::pass {
namespace {

/// The register that stands for one component of %ctaid or %nctaid; an immediate 0 for component w.
Operand component_operand(const Operand& special, std::string_view component) {
  if (component == "w") return zero_operand();
  const char* prefix = special.text == "%ctaid" ? kCtaidRegister : kNctaidRegister;
  return register_operand(prefix + std::string(component));
}

bool is_grid_special(const Operand& operand) {
  return operand.kind == Operand::Kind::kSpecial && (operand.text == "%ctaid" || operand.text == "%nctaid");
}

bool has_16_bit_type(const Instruction& instruction) {
  return instruction.has("u16") || instruction.has("s16") || instruction.has("b16");
}

/// Writes `mov.v4.u32 {a, b, c, d}, %ctaid` as one mov for each element. False if `move` is another instruction.
bool split_vector_move(const Instruction& move, std::vector<Statement>& out) {
  if (move.opcode != "mov" || move.operands.size() != 2 || !is_grid_special(move.operands[1])) return false;
  static constexpr std::array<std::string_view, 4> kComponents = {"x", "y", "z", "w"};
  const Operand& to = move.operands[0];
  const bool vector = to.kind == Operand::Kind::kVector;
  if (!vector && (to.kind != Operand::Kind::kRegister || !to.component.empty())) return false;
  if (vector && to.items.size() > kComponents.size()) return false;
  for (std::size_t i = 0; i < (vector ? to.items.size() : kComponents.size()); ++i) {
    Operand element = vector ? to.items[i] : to;
    if (element.kind == Operand::Kind::kSink) continue;
    if (!vector) element.component = kComponents[i];
    Instruction one;
    one.guard = move.guard;
    one.opcode = "mov";
    one.modifiers = {"u32"};
    one.operands = {std::move(element), component_operand(move.operands[1], kComponents[i])};
    out.emplace_back(std::move(one));
  }
  return true;
}

/// Rewrites the reads of one instruction and appends it to `out`. Returns an empty string, or why it cannot.
std::string replace_reads(Instruction& instruction, std::vector<Statement>& out) {
  bool reads = false;
  bool whole = false;
  for (const Operand& operand : instruction.operands) {
    for_each_operand(operand, [&](const Operand& inner) {
      if (!is_grid_special(inner)) return;
      reads = true;
      whole = whole || inner.component.empty();
    });
  }
  if (!reads) {
    out.emplace_back(std::move(instruction));
    return {};
  }
  if (whole)
    return split_vector_move(instruction, out) ? "" : "reads the whole of %ctaid in '" + instruction.opcode + "'";
  if (has_16_bit_type(instruction)) {
    const bool move = instruction.opcode == "mov" && instruction.modifiers.size() == 1;
    if (!move) return "reads 16 bits of %ctaid in '" + instruction.opcode + "'";
    instruction.opcode = "cvt";
    instruction.modifiers = {"u16", "u32"};
  }
  for (Operand& operand : instruction.operands) {
    for_each_operand(operand, [&](Operand& inner) {
      if (is_grid_special(inner)) inner = component_operand(inner, inner.component);
    });
  }
  out.emplace_back(std::move(instruction));
  return {};
}

struct Value {
  std::uint8_t bit;
  std::string reg;
};

std::vector<Value> values_of(std::uint8_t grid_reads) {
  std::vector<Value> result;
  for (int i = 0; i < 6; ++i) {
    const auto bit = static_cast<std::uint8_t>(1 << i);
    if ((grid_reads & bit) != 0)
      result.push_back({bit, (i < 3 ? kCtaidRegister : kNctaidRegister) + std::string(1, "xyz"[i % 3])});
  }
  return result;
}

Variable param_variable(std::string name) {
  Variable variable;
  variable.specifiers = {".param", ".b32"};
  variable.names.emplace_back();
  variable.names[0].name = std::move(name);
  decode_specifiers(variable);
  return variable;
}

Instruction param_access(const char* opcode, const std::string& param, const std::string& reg) {
  Operand address;
  address.kind = Operand::Kind::kAddress;
  address.items.push_back(symbol_operand(param));
  Instruction result;
  result.opcode = opcode;
  result.modifiers = {"param", "b32"};
  if (result.opcode == "ld") {
    result.operands = {register_operand(reg), std::move(address)};
  } else {
    result.operands = {std::move(address), register_operand(reg)};
  }
  return result;
}

/// Passes the values that a copied function needs to it, as further arguments.
class CallExtender {
 public:
  void extend(Instruction& call, std::uint8_t grid_reads, std::vector<Statement>& out) {
    Operand* arguments = nullptr;
    bool after_target = false;
    for (Operand& operand : call.operands) {
      if (operand.kind != Operand::Kind::kList) after_target = true;
      if (after_target && operand.kind == Operand::Kind::kList) arguments = &operand;
    }
    if (arguments == nullptr) {
      call.operands.emplace_back().kind = Operand::Kind::kList;
      arguments = &call.operands.back();
    }
    for (const Value& value : values_of(grid_reads)) {
      const std::string name = "gpuslice_argument_" + std::to_string(count_++);
      out.emplace_back(param_variable(name));
      out.emplace_back(param_access("st", name, value.reg));  // never guarded, even if the call is: PTX forbids it
      arguments->items.push_back(symbol_operand(name));
    }
  }

 private:
  int count_ = 0;
};

/// Rewrites reads and calls in one body. Returns an empty string, or why it cannot.
std::string rewrite_body(const Kernel& kernel, CallExtender& extender, std::vector<Statement>& body) {
  std::string problem;
  replace_instructions(body, [&](Instruction& instruction, std::vector<Statement>& out) {
    if (instruction.opcode == "call") {
      const std::uint8_t reads = copied_call_reads(kernel, instruction);
      if (reads != 0) extender.extend(instruction, reads, out);
    }
    const std::string why = replace_reads(instruction, out);
    if (problem.empty()) problem = why;
  });
  return problem;
}

/// Declares the registers of a copied function and fills them from the parameters appended to it.
void receive_values(Function& function, std::uint8_t grid_reads) {
  std::vector<Statement> head;
  for (const Value& value : values_of(grid_reads)) {
    const std::string param = "gpuslice_value_" + value.reg.substr(1);
    function.params.push_back(param_variable(param));
    Variable reg;
    reg.specifiers = {".reg", ".b32"};
    reg.names.emplace_back();
    reg.names[0].name = value.reg;
    decode_specifiers(reg);
    head.emplace_back(std::move(reg));
    head.emplace_back(param_access("ld", param, value.reg));
  }
  function.has_params = function.has_params || !head.empty();
  std::move(function.body->begin(), function.body->end(), std::back_inserter(head));
  function.body = std::move(head);
}

}  // namespace

Refused replace_block_index(Kernel& kernel) {
  for (const std::string& name : kernel.closure.by_address) {
    if (kernel.facts.closure(name).grid_reads != 0)
      return "a function called through a pointer ('" + name + "') reads %ctaid or %nctaid";
  }
  copy_functions(kernel);
  CallExtender extender;
  if (std::string problem = rewrite_body(kernel, extender, *kernel.entry.body); !problem.empty()) return problem;
  if (kernel.plain_body) rewrite_body(kernel, extender, *kernel.plain_body);  // succeeds because it did above
  for (CopiedFunction& copy : kernel.functions) {
    CallExtender copy_extender;
    if (std::string problem = rewrite_body(kernel, copy_extender, *copy.function.body); !problem.empty()) {
      return "calls '" + copy.original + "': " + problem;
    }
    receive_values(copy.function, kernel.facts.closure(copy.original).grid_reads);
  }
  return {};
}

}  // namespace gpuctl::ptx::pass
