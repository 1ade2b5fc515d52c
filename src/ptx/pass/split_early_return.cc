#include "ptx/pass/split_early_return.h"

#include <set>
#include <span>
#include <string>

#include "ptx/walk.h"

namespace gpuctl::ptx::pass {
namespace {

constexpr char kCrossing[] = "$gpuslice_someone_returns";
constexpr std::size_t kMaxInstructions = 5000;  // of a body worth having twice; compilation time grows with it

std::size_t count_instructions(const std::vector<Statement>& body) {
  std::size_t count = 0;
  for_each_instruction(body, [&](const Instruction&) { ++count; });
  return count;
}

/// The index in `body` of the instruction at `place`; nothing when it stands in a nested scope, into which no jump leads.
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
    if (auto* directive = std::get_if<Directive>(&statement); directive != nullptr && directive->name() == ".branchtargets") {
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

/// `bar.red.or.pred q, 0, p; @q bra.uni crossing;` where p is the condition under which `branch` lets a thread return.
void append_crossing(const Instruction& branch, bool returns_if_taken, std::vector<Statement>& out) {
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
  reduce.operands = {register_operand(kSomeoneRegister), std::move(zero), std::move(condition)};
  out.emplace_back(std::move(reduce));
  Instruction cross;
  cross.guard = Guard{kSomeoneRegister, false};
  cross.opcode = "bra";
  cross.modifiers = {"uni"};
  cross.operands = {symbol_operand(kCrossing)};
  out.emplace_back(std::move(cross));
}

/// Whether the instructions of `body` up to the branch leave shared memory alone: then the block meets at the branch before
/// it touches what the block-task before it used.
bool leaves_shared_alone(std::span<const Statement> before) {
  static const std::set<std::string> kOthers = {"call", "cp", "ldmatrix", "ldu", "mbarrier", "stmatrix", "wmma"};
  bool result = true;
  for_each_instruction(before, [&](const Instruction& i) {
    const bool elsewhere = i.has("global") || i.has("param") || i.has("const") || i.has("local");
    const bool memory = i.opcode == "ld" || i.opcode == "st" || i.opcode == "atom" || i.opcode == "red";
    result &= (!memory || elsewhere) && kOthers.count(i.opcode) == 0;
  });
  return result;
}

}  // namespace

Refused split_early_return(Kernel& kernel) {
  if (!kernel.return_branch) return {};
  std::vector<Statement>& body = *kernel.entry.body;
  const std::optional<std::size_t> at = find_statement(body, kernel.return_branch->place);
  if (!at || count_instructions(body) > kMaxInstructions) return {};
  std::set<std::string> labels;
  collect_labels(body, labels);
  kernel.meets_at_branch = leaves_shared_alone(std::span<const Statement>(body).first(*at));

  std::vector<Statement> plain;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (i != *at) {
      plain.push_back(body[i]);
      continue;
    }
    Instruction branch = std::get<Instruction>(body[i]);
    append_crossing(branch, kernel.return_branch->returns_if_taken, plain);
    branch.guard.reset();  // nobody returns: the branch is always taken, or never
    if (!kernel.return_branch->returns_if_taken) plain.emplace_back(std::move(branch));
  }
  rename_labels(plain, labels);
  kernel.plain_body = std::move(plain);

  // Both bodies stand in one function: what the plain one declares is there for the other.
  std::vector<Statement> other;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (std::holds_alternative<Variable>(body[i])) continue;
    if (i == *at) other.emplace_back(Label{kCrossing});
    other.push_back(std::move(body[i]));
  }
  body = std::move(other);
  return {};
}

}  // namespace gpuctl::ptx::pass
