#include "ptx/pass/split_early_return.h"

#include <set>
#include <span>
#include <string>

#include "ptx/analysis/any_thread.h"
#include "ptx/analysis/walk.h"
#include "ptx/syntax/opcode.h"

namespace gpuctl::ptx::pass {
namespace {

constexpr std::size_t kMaxInstructions = 5000;  // of a body that is duplicated; compilation time grows with it

std::size_t count_instructions(const std::vector<Statement>& body) {
  std::size_t count = 0;
  for_each_instruction(body, [&](const Instruction&) { ++count; });
  return count;
}

/// The index in `body` of the instruction at `place`. Nothing if it is in a nested scope, into which no jump leads.
std::optional<std::size_t> find_statement(const std::vector<Statement>& body, std::size_t place) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (const auto* scope = std::get_if<Scope>(&body[i])) at += count_instructions(scope->body);
    if (!std::holds_alternative<Instruction>(body[i])) continue;
    if (at++ == place) return i;
  }
  return std::nullopt;
}

void collect_labels(const std::vector<Statement>& body, std::set<std::string>& labels) {
  for (const Statement& statement : body) {
    if (const auto* label = std::get_if<Label>(&statement)) labels.insert(label->name);
    if (const auto* scope = std::get_if<Scope>(&statement)) collect_labels(scope->body, labels);
  }
}

void rename_labels(std::vector<Statement>& body, const std::set<std::string>& labels) {
  const auto rename = [&](std::string& name) {
    if (labels.count(name) != 0) name += "_gpuslice_plain";
  };
  for (Statement& statement : body) {
    if (auto* label = std::get_if<Label>(&statement)) rename(label->name);
    if (auto* scope = std::get_if<Scope>(&statement)) rename_labels(scope->body, labels);
    if (auto* directive = std::get_if<Directive>(&statement);
        directive != nullptr && directive->name() == ".branchtargets") {
      for (std::string& token : directive->tokens) rename(token);
    }
    if (auto* instruction = std::get_if<Instruction>(&statement)) {
      for (Operand& operand : instruction->operands) {
        for_each_operand(operand, [&](Operand& inner) {
          if (inner.kind == Operand::Kind::kSymbol) rename(inner.text);
        });
      }
    }
  }
}

/// `bar.red.or.pred %gpuslice_someone, 0, p;` where p is the condition.
Instruction reduce_over_block(const Guard& condition) {
  Operand value = register_operand(condition.reg);
  if (condition.negated) {
    Operand negated;
    negated.kind = Operand::Kind::kNegated;
    negated.text = "!";
    negated.items.push_back(std::move(value));
    value = std::move(negated);
  }
  Instruction reduce;
  reduce.opcode = "bar";
  reduce.modifiers = {"red", "or", "pred"};
  reduce.operands = {register_operand(kSomeoneRegister), zero_operand(), std::move(value)};
  return reduce;
}

/// `@%gpuslice_someone bra.uni $gpuslice_crossing;`
Instruction cross() {
  Instruction branch;
  branch.guard = Guard{kSomeoneRegister, false};
  branch.opcode = "bra";
  branch.modifiers = {"uni"};
  branch.operands = {symbol_operand(kCrossing)};
  return branch;
}

/// Whether a thread may execute these again without an effect that anything else can see.
bool is_repeatable(std::span<const Statement> statements) {
  bool result = true;
  for_each_instruction(statements, [&](const Instruction& i) {
    const OpcodeKind kind = opcode_kind(i.opcode);
    result &= kind == OpcodeKind::kCompute || kind == OpcodeKind::kBranch ||
              (kind == OpcodeKind::kLoad && !i.has("volatile"));
  });
  return result;
}

bool leaves_shared_alone(std::span<const Statement> loads) {
  bool result = true;
  for_each_instruction(loads, [&](const Instruction& i) {
    const bool elsewhere = i.has("global") || i.has("param") || i.has("const") || i.has("local");
    result &= opcode_kind(i.opcode) != OpcodeKind::kLoad || elsewhere;
  });
  return result;
}

}  // namespace

Refused split_early_return(Kernel& kernel) {
  if (!kernel.return_branch) return {};
  std::vector<Statement>& body = *kernel.entry.body;
  const std::optional<std::size_t> at = find_statement(body, kernel.return_branch->place);
  if (!at || count_instructions(body) > kMaxInstructions) return {};
  const auto before = std::span<const Statement>(body).first(*at);
  if (!is_repeatable(before)) return {};
  std::set<std::string> labels;
  collect_labels(body, labels);

  Instruction branch = std::get<Instruction>(body[*at]);
  const Guard returns{branch.guard->reg, branch.guard->negated == kernel.return_branch->returns_if_taken};
  std::optional<std::vector<Statement>> decide = any_thread(kernel.entry, returns, kSomeoneRegister);
  if (!decide) {
    decide = {reduce_over_block(returns)};
    kernel.meets_at_branch = leaves_shared_alone(before);
  }

  std::vector<Statement> plain;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (i != *at) {
      plain.push_back(body[i]);
      continue;
    }
    plain.insert(plain.end(), decide->begin(), decide->end());
    plain.emplace_back(cross());
    branch.guard.reset();  // no thread returns: the branch is always taken, or never
    if (!kernel.return_branch->returns_if_taken) plain.emplace_back(branch);
  }
  rename_labels(plain, labels);
  kernel.plain_body = std::move(plain);

  // Both bodies are in one function: the declarations of the plain one serve the other too.
  std::vector<Statement> other;
  for (Statement& statement : body) {
    if (!std::holds_alternative<Variable>(statement)) other.push_back(std::move(statement));
  }
  body = std::move(other);
  return {};
}

}  // namespace gpuctl::ptx::pass
