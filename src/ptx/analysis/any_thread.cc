#include "ptx/analysis/any_thread.h"

#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "ptx/analysis/definitions.h"
#include "ptx/analysis/flow.h"
#include "ptx/analysis/uniformity.h"
#include "ptx/analysis/walk.h"
#include "ptx/syntax/parser.h"

namespace gpuctl::ptx::pass {
namespace {

// Block dimensions, and so %ntid and %tid, cannot be larger.
constexpr std::uint64_t kMostThreads = 1024;
constexpr std::uint64_t kMostThreadsZ = 64;
constexpr std::uint64_t kMostSpan = 0x7fffffff;  // a value that rises by at most this wraps around at most once
constexpr char kZero[] = "0";                    // a thread's index begins at 0, and rises without wrapping around

/// A 32-bit value in the first and in the last thread of the block, as operands.
struct Ends {
  std::string first;
  std::string last;
  std::uint64_t span;    ///< the most by which it rises; 0: the same in all threads
  std::string end = {};  ///< an operand for `last` + 1, if there is one
};

class Writer {
 public:
  Writer(const Function& function, const Flow& flow)
      : flow_(flow), divergence_(find_divergence(function, flow)), definitions_(flow) {}

  /// False if the condition is of a kind that is not handled.
  bool write(const Guard& condition, const std::string& result) {
    const std::optional<std::string> found = holds(condition.reg, condition.negated);
    if (!found) return false;
    add("mov.pred " + result + ", " + *found);
    return true;
  }

  std::string text() const {
    const auto declare = [](std::string_view type, const char* name, int count) {
      return "  .reg ." + std::string(type) + " " + name + "<" + std::to_string(count + 1) + ">;\n";
    };
    return declare("pred", kPredicates, predicates_) + declare("b32", kWords, words_) + text_;
  }

 private:
  static constexpr char kPredicates[] = "%gpuslice_any_p";
  static constexpr char kWords[] = "%gpuslice_any_r";

  void add(const std::string& instruction) { text_ += "  " + instruction + ";\n"; }
  std::string word() { return kWords + std::to_string(words_++); }
  std::string predicate() { return kPredicates + std::to_string(predicates_++); }

  bool is_uniform(const std::string& name) const { return divergence_.registers[flow_.registers.at(name)] == 0; }

  static bool is_word_type(const Instruction& i) { return i.has("u32") || i.has("s32") || i.has("b32"); }

  std::string compute(const std::string& operation, const std::string& a, const std::string& b) {
    const std::string to = word();
    add(operation + " " + to + ", " + a + ", " + b);
    return to;
  }

  std::optional<Ends> of_thread_index(const Operand& special) {
    if (special.text != "%tid" || (special.component != "x" && special.component != "y" && special.component != "z"))
      return {};
    const std::string end = word();
    add("mov.u32 " + end + ", %ntid." + special.component);
    return Ends{kZero, compute("sub.u32", end, "1"), (special.component == "z" ? kMostThreadsZ : kMostThreads) - 1,
                end};
  }

  std::optional<Ends> value(const Operand& operand) {
    switch (operand.kind) {
      case Operand::Kind::kImmediate:
        return Ends{operand.text, operand.text, 0};
      case Operand::Kind::kSpecial:
        return of_thread_index(operand);
      case Operand::Kind::kRegister: {
        const Instruction* i = definitions_.once(operand.text);
        if (i == nullptr) return {};
        if (is_uniform(operand.text)) return Ends{operand.text, operand.text, 0};
        // Unknown while it is being computed: a register may be computed from itself.
        const auto [known, is_new] = values_.emplace(operand.text, std::nullopt);
        return is_new ? known->second = result_of(*i) : known->second;
      }
      default:
        return {};
    }
  }

  std::optional<Ends> result_of(const Instruction& i) {
    if (!is_word_type(i) || i.has("sat") || i.has("cc") || i.has("hi") || i.has("wide")) return {};
    if (i.opcode == "mov" && i.operands.size() == 2) return value(i.operands[1]);
    if (i.opcode == "add" && i.operands.size() == 3) return sum(value(i.operands[1]), value(i.operands[2]), "add.u32");
    if (i.opcode == "sub" && i.operands.size() == 3) {
      const std::optional<Ends> less = value(i.operands[2]);
      return less && less->span == 0 ? sum(value(i.operands[1]), less, "sub.u32") : std::nullopt;
    }
    if (i.opcode == "mul" && i.operands.size() == 3) return product(i.operands[1], i.operands[2]);
    if (i.opcode == "mad" && i.operands.size() == 4)
      return sum(product(i.operands[1], i.operands[2]), value(i.operands[3]), "add.u32");
    return {};
  }

  std::optional<Ends> sum(const std::optional<Ends>& a, const std::optional<Ends>& b, const std::string& operation) {
    if (!a || !b || a->span + b->span > kMostSpan) return {};
    const std::string first = compute(operation, a->first, b->first);
    return Ends{first, a->span + b->span == 0 ? first : compute(operation, a->last, b->last), a->span + b->span};
  }

  /// The largest value of a factor that is known to be positive; 0 if it is not known to be.
  std::uint64_t most(const Operand& factor) const {
    if (factor.kind == Operand::Kind::kImmediate) return factor.bits <= kMostSpan ? factor.bits : 0;
    const Instruction* i = factor.kind == Operand::Kind::kRegister ? definitions_.once(factor.text) : nullptr;
    const bool is_size = i != nullptr && i->opcode == "mov" && i->operands[1].kind == Operand::Kind::kSpecial &&
                         i->operands[1].text == "%ntid";
    return is_size ? kMostThreads : 0;
  }

  std::optional<Ends> product(const Operand& left, const Operand& right) {
    const std::optional<Ends> a = value(left), b = value(right);
    if (!a || !b) return {};
    std::uint64_t span = 0;
    if (a->span != 0 || b->span != 0) {
      const std::uint64_t factor = a->span == 0 ? most(left) : b->span == 0 ? most(right) : 0;
      span = (a->span + b->span) * factor;
      if (span == 0 || span > kMostSpan) return {};
    }
    const std::string first = compute("mul.lo.u32", a->first, b->first);
    return Ends{first, span == 0 ? first : compute("mul.lo.u32", a->last, b->last), span};
  }

  /// A predicate that is true if `name`, or its opposite, holds for some thread.
  std::optional<std::string> holds(const std::string& name, bool negated) {
    const Instruction* i = definitions_.once(name);
    if (i == nullptr) return {};
    if (is_uniform(name)) return negated ? combine("not.pred", {name}) : name;
    const auto [known, is_new] = conditions_.emplace(std::pair(name, negated), std::nullopt);
    return is_new ? known->second = holds_by(*i, negated) : known->second;
  }

  std::optional<std::string> holds_by(const Instruction& i, bool negated) {
    if (i.operands.size() < 2 || i.operands[0].kind != Operand::Kind::kRegister) return {};
    if (i.opcode == "setp") return comparison(i, negated);
    if (!i.has("pred") || (i.opcode != "and" && i.opcode != "or" && i.opcode != "not" && i.opcode != "mov")) return {};
    std::vector<std::string> parts;
    for (std::size_t at = 1; at < i.operands.size(); ++at) {
      const std::optional<std::string> part = holds(i.operands[at].text, negated != (i.opcode == "not"));
      if (i.operands[at].kind != Operand::Kind::kRegister || !part) return {};
      parts.push_back(*part);
    }
    if (parts.size() == 1) return parts[0];
    return combine((i.opcode == "or") != negated ? "or.pred" : "and.pred", parts);
  }

  std::string combine(const std::string& operation, const std::vector<std::string>& parts) {
    const std::string to = predicate();
    std::string operands = to;
    for (const std::string& part : parts) operands += ", " + part;
    add(operation + " " + operands);
    return to;
  }

  std::optional<std::string> comparison(const Instruction& i, bool negated) {
    struct Row {
      const char* name;
      const char* opposite;
      bool of_large;  ///< if it holds for any values, it holds for the largest left and the smallest right value
    };
    static constexpr std::array<Row, 8> kRows = {{{"lt", "ge", false},
                                                  {"le", "gt", false},
                                                  {"gt", "le", true},
                                                  {"ge", "lt", true},
                                                  {"lo", "hs", false},
                                                  {"ls", "hi", false},
                                                  {"hi", "ls", true},
                                                  {"hs", "lo", true}}};
    const std::size_t modifiers = i.modifiers.size();
    if ((!i.has("u32") && !i.has("s32")) || modifiers < 2 || modifiers > 3) return {};
    const Row* row = nullptr;
    for (const Row& each : kRows) {
      if (i.modifiers[0] == (negated ? each.opposite : each.name)) row = &each;
    }
    const std::optional<Ends> a = value(i.operands[1]), b = value(i.operands[2]);
    if (row == nullptr || !a || !b) return {};
    const std::string type = "." + i.modifiers.back();
    std::string result = predicate();
    std::string name = row->name, left = row->of_large ? a->last : a->first;
    if (!a->end.empty() && (name == "ge" || name == "hs")) {
      name = name == "ge" ? "gt" : "hi";
      left = a->end;
    }
    add("setp." + name + type + " " + result + ", " + left + ", " + (row->of_large ? b->first : b->last));
    for (const auto& side : {*a, *b}) {
      if (side.span == 0 || side.first == kZero) continue;
      const std::string wraps = predicate();
      add("setp.lt.or" + type + " " + wraps + ", " + side.last + ", " + side.first + ", " + result);
      result = wraps;
    }
    if (modifiers == 2) return result;
    if (i.operands.size() != 4 || i.operands[3].kind != Operand::Kind::kRegister) return {};
    const bool is_or = i.modifiers[1] == "or";
    if (!is_or && i.modifiers[1] != "and") return {};
    const std::optional<std::string> other = holds(i.operands[3].text, negated);
    if (!other) return {};
    return combine(is_or != negated ? "or.pred" : "and.pred", {result, *other});
  }

  const Flow& flow_;
  const Taint divergence_;
  const Definitions definitions_;
  std::map<std::string, std::optional<Ends>> values_;  ///< by register; each is computed once
  /// By register and negation; each is computed once.
  std::map<std::pair<std::string, bool>, std::optional<std::string>> conditions_;
  std::string text_;
  int words_ = 0;
  int predicates_ = 0;
};

}  // namespace

std::optional<std::vector<Statement>> any_thread(const Function& function, const Guard& condition,
                                                 const std::string& result) {
  const Result<Flow> flow = build_flow(function);
  if (!flow) return std::nullopt;
  Writer writer(function, *flow);
  if (!writer.write(condition, result)) return std::nullopt;
  Result<Module> module =
      parse(".version 6.0\n.target sm_70\n.address_size 64\n.func f()\n{\n" + writer.text() + "}\n");
  if (!module) return std::nullopt;
  std::vector<Statement> body = std::move(*std::get<Function>(module->items.at(0)).body);
  // The function's registers are not declared in that text.
  for_each_instruction(body, [&](Instruction& instruction) {
    for (Operand& operand : instruction.operands) {
      if (flow->registers.count(operand.text) != 0 || operand.text == result) operand.kind = Operand::Kind::kRegister;
    }
  });
  return body;
}

}  // namespace gpuctl::ptx::pass
