#include "ptx/analysis/distinct_registers.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ptx/analysis/walk.h"
#include "ptx/syntax/register_scopes.h"

namespace gpuctl::ptx {
namespace {

/// So many names of a range are compared with the others.
constexpr std::uint32_t kLongRange = 1'000;

bool is_taken(const RegisterScopes& known, const Declarator& name) {
  if (!name.range) return known.contains(name.name);
  for (std::uint32_t i = 0; i < std::min(*name.range, kLongRange); ++i)
    if (known.contains(name.name + std::to_string(i))) return true;
  return false;
}

class Renamer {
 public:
  explicit Renamer(Function& function) : function_(function) {}

  /// Whether anything was renamed.
  bool run() {
    known_.open();
    for (std::vector<Variable>* variables : {&function_.params, &function_.returns}) {
      for (Variable& variable : *variables) declare(variable);
    }
    for (const Statement& statement : *function_.body) {
      if (const auto* variable = std::get_if<Variable>(&statement)) declare(*variable);
    }
    for_each_instruction(*function_.body, [this](const Instruction& instruction) {
      for (const Operand& operand : instruction.operands)
        for_each_operand(operand, [this](const Operand& inner) { others_.insert(inner.text); });
    });
    visit(*function_.body, true);
    function_.body->insert(function_.body->begin(), std::make_move_iterator(hoisted_.begin()),
                           std::make_move_iterator(hoisted_.end()));
    return !hoisted_.empty();
  }

 private:
  struct Renamed {
    std::string name, replacement;
    std::optional<std::uint32_t> range;
  };

  void declare(const Variable& variable) {
    if (variable.space != "reg") return;
    for (const Declarator& name : variable.names) known_.declare(name.name, name.range);
  }

  void visit(std::vector<Statement>& body, bool is_outermost) {
    const std::size_t before = renamed_.size();
    std::vector<Statement> kept;
    for (Statement& statement : body) {
      if (auto* variable = std::get_if<Variable>(&statement)) {
        if (variable->space == "reg" && !is_outermost) rename(*variable);
        if (variable->names.empty()) continue;
      } else if (auto* instruction = std::get_if<Instruction>(&statement)) {
        replace(*instruction);
      } else if (auto* scope = std::get_if<Scope>(&statement)) {
        visit(scope->body, false);
      }
      kept.push_back(std::move(statement));
    }
    body = std::move(kept);
    renamed_.resize(before);
  }

  /// Whether what the function names by any other means begins so.
  bool is_other(const std::string& begin) const {
    const auto next = others_.lower_bound(begin);
    return next != others_.end() && next->starts_with(begin);
  }

  /// Moves the names that are taken from the declaration to another one.
  void rename(Variable& variable) {
    Variable moved = variable;
    moved.names.clear();
    std::vector<Declarator> kept;
    for (Declarator& name : variable.names) {
      const bool taken = is_taken(known_, name);
      const std::string before = name.name;
      while (is_taken(known_, name) || (name.name != before && is_other(name.name)))
        name.name = before + "_in" + std::to_string(++number_) + '_';
      renamed_.push_back({before, name.name, name.range});
      known_.declare(name.name, name.range);
      (taken ? moved.names : kept).push_back(std::move(name));
    }
    variable.names = std::move(kept);
    if (!moved.names.empty()) hoisted_.emplace_back(std::move(moved));
  }

  void replace(std::string& name) const {
    for (auto known = renamed_.rbegin(); known != renamed_.rend(); ++known) {
      if (!matches(*known, name)) continue;
      name = known->replacement + name.substr(known->name.size());
      return;
    }
  }

  static bool matches(const Renamed& known, const std::string& name) {
    if (!known.range) return name == known.name;
    RegisterScopes one;
    one.open();
    one.declare(known.name, known.range);
    return name.starts_with(known.name) && one.contains(name);
  }

  void replace(Instruction& instruction) const {
    if (renamed_.empty()) return;
    if (instruction.guard) replace(instruction.guard->reg);
    for (Operand& operand : instruction.operands)
      for_each_operand(operand, [&](Operand& inner) {
        if (inner.kind == Operand::Kind::kRegister) replace(inner.text);
      });
  }

  Function& function_;
  RegisterScopes known_;          ///< all so far, of all scopes
  std::set<std::string> others_;  ///< all that operands name
  std::vector<Renamed> renamed_;  ///< those of the inner scopes that are open
  std::vector<Statement> hoisted_;
  int number_ = 0;
};

bool has_inner_registers(const std::vector<Statement>& body, bool is_outermost = true) {
  for (const Statement& statement : body) {
    if (const auto* variable = std::get_if<Variable>(&statement); variable && !is_outermost && variable->space == "reg")
      return true;
    if (const auto* scope = std::get_if<Scope>(&statement); scope && has_inner_registers(scope->body, false))
      return true;
  }
  return false;
}

}  // namespace

std::optional<Module> with_distinct_registers(const Module& module) {
  std::optional<Module> result;
  for (std::size_t i = 0; i < module.items.size(); ++i) {
    const auto* function = std::get_if<Function>(&module.items[i]);
    if (function == nullptr || !function->body || !has_inner_registers(*function->body)) continue;
    Function own = *function;
    if (!Renamer(own).run()) continue;
    if (!result) result = module;
    result->items[i] = std::move(own);
  }
  return result;
}

}  // namespace gpuctl::ptx
