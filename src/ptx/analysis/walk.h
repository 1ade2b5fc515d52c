// Visiting every instruction and operand of a function, through nested scopes.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "ptx/syntax/syntax.h"

namespace gpuctl::ptx {

/// Calls visit(instruction) for each instruction of `body`, in order. The instruction is const if the body is.
template <class Body, class Visit>
void for_each_instruction(Body& body, Visit&& visit) {
  for (auto& statement : body) {
    if (auto* instruction = std::get_if<Instruction>(&statement)) {
      visit(*instruction);
    } else if (auto* scope = std::get_if<Scope>(&statement)) {
      for_each_instruction(scope->body, visit);
    }
  }
}

/// Calls visit(operand) for `operand` and everything inside it.
template <class AnyOperand, class Visit>
void for_each_operand(AnyOperand& operand, Visit&& visit) {
  visit(operand);
  for (auto& item : operand.items) for_each_operand(item, visit);
}

/// Rebuilds every statement list of `body`, nested ones included. replace(instruction, out) appends the replacement of
/// the instruction to `out`.
template <class Replace>
void replace_instructions(std::vector<Statement>& body, Replace&& replace) {
  std::vector<Statement> out;
  out.reserve(body.size());
  for (Statement& statement : body) {
    if (auto* instruction = std::get_if<Instruction>(&statement)) {
      replace(*instruction, out);
      continue;
    }
    if (auto* scope = std::get_if<Scope>(&statement)) replace_instructions(scope->body, replace);
    out.push_back(std::move(statement));
  }
  body = std::move(out);
}

inline bool is_one_of(const Instruction& instruction, std::initializer_list<std::string_view> opcodes) {
  return std::find(opcodes.begin(), opcodes.end(), instruction.opcode) != opcodes.end();
}

/// A register operand.
inline Operand register_operand(std::string name) {
  Operand operand;
  operand.kind = Operand::Kind::kRegister;
  operand.text = std::move(name);
  return operand;
}

/// The immediate 0.
inline Operand zero_operand() {
  Operand operand;
  operand.kind = Operand::Kind::kImmediate;
  operand.text = "0";
  return operand;
}

/// A variable, label or function named as an operand.
inline Operand symbol_operand(std::string name) {
  Operand operand;
  operand.kind = Operand::Kind::kSymbol;
  operand.text = std::move(name);
  return operand;
}

}  // namespace gpuctl::ptx
