#include "ptx/waiting/memory_flow.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ptx/analysis/memory_use.h"
#include "ptx/analysis/walk.h"
#include "ptx/syntax/opcode.h"

namespace gpuctl::ptx {
namespace {

enum class Space : std::uint8_t { kGlobal, kShared, kLocal, kOther };

/// What an address is computed from.
struct Root {
  enum class Kind : std::uint8_t { kNumber, kNamed, kUnknown };
  Kind kind = Kind::kNumber;
  Space space = Space::kGlobal;
  std::string name;

  bool operator==(const Root&) const = default;
};

Root unknown_root() {
  return {.kind = Root::Kind::kUnknown, .space = Space::kGlobal, .name = {}};
}

/// One of two values, as at a place where two ways meet.
Root either(const Root& a, const Root& b) {
  if (a.kind == Root::Kind::kNumber) return b;
  return b.kind == Root::Kind::kNumber || a == b ? a : unknown_root();
}

/// A sum: at most one of its parts is an address.
Root sum(const Root& a, const Root& b) {
  if (a.kind == Root::Kind::kNamed && b.kind == Root::Kind::kUnknown) return a;
  if (b.kind == Root::Kind::kNamed && a.kind == Root::Kind::kUnknown) return b;
  return either(a, b);
}

class FlowOfMemory {
 public:
  FlowOfMemory(const ModuleFacts& facts, const Function& function, MemoryFlow& out)
      : facts_(facts), function_(function), out_(out), flow_(out.flow) {}

  void run() {
    for (const Variable& param : function_.params) params_.insert(param.names[0].name);
    read_body(*function_.body, {});
    writers_.resize(flow_.registers.size());
    for (FlowBlock& block : flow_.blocks) {
      for (FlowInstruction& i : block.instructions) {
        for (const int reg : i.writes) writers_[static_cast<std::size_t>(reg)].push_back(i.instruction);
      }
    }
    for (FlowBlock& block : flow_.blocks) {
      for (FlowInstruction& i : block.instructions) note(*i.instruction);
    }
    for (FlowBlock& block : flow_.blocks) {
      for (FlowInstruction& i : block.instructions) connect(i);
    }
    out_.is_shared.assign(flow_.registers.size(), 0);
    out_.is_memory.assign(flow_.registers.size(), 0);
    out_.is_call_param.assign(flow_.registers.size(), 0);
    for (const auto& [name, number] : flow_.registers) {
      const auto reg = static_cast<std::size_t>(number);
      out_.is_shared[reg] = name.starts_with(kSharedName) ? 1 : 0;
      out_.is_call_param[reg] = name.starts_with(kParamName) ? 1 : 0;
      out_.is_memory[reg] = name.starts_with(kLocalName) ? 1 : out_.is_shared[reg];
    }
  }

 private:
  // No register of PTX has a space in its name.
  static constexpr int kDeepest = 1000;  // of a chain of computed addresses
  static constexpr char kSharedName[] = "shared ";
  static constexpr char kLocalName[] = "local ";
  static constexpr char kParamName[] = "param ";

  struct Place {
    Space space;
    std::string name;
    bool reads, writes;
  };

  int number(const std::string& name) {
    return flow_.registers.try_emplace(name, static_cast<int>(flow_.registers.size())).first->second;
  }

  /// Call parameters of the same name in different scopes are different ones.
  void read_body(const std::vector<Statement>& body, std::map<std::string, std::string> call_params) {
    for (const Statement& statement : body) {
      if (const auto* variable = std::get_if<Variable>(&statement)) {
        for (const Declarator& name : variable->names) {
          if (variable->space == "param") call_params[name.name] = kParamName + std::to_string(scopes_++);
          if (variable->space == "local") locals_.insert(name.name);
          if (variable->space.starts_with("shared")) shared_.insert(name.name);
        }
      } else if (const auto* scope = std::get_if<Scope>(&statement)) {
        read_body(scope->body, call_params);
      } else if (const auto* instruction = std::get_if<Instruction>(&statement)) {
        read_params(*instruction, call_params);
      }
    }
  }

  void read_params(const Instruction& instruction, const std::map<std::string, std::string>& names) {
    bool behind_target = false;
    for (const Operand& operand : instruction.operands) {
      if (operand.kind == Operand::Kind::kSymbol) behind_target = true;
      for_each_operand(operand, [&](const Operand& inner) {
        const auto found = inner.kind == Operand::Kind::kSymbol ? names.find(inner.text) : names.end();
        if (found == names.end()) return;
        const bool store = instruction.opcode == "st" || (instruction.opcode == "call" && !behind_target);
        call_params_[&instruction].emplace_back(found->second, store);
      });
    }
  }

  Space space_of(const std::string& symbol) const {
    if (shared_.count(symbol) != 0 || facts_.is_shared_variable(symbol)) return Space::kShared;
    return locals_.count(symbol) != 0 ? Space::kLocal : Space::kGlobal;
  }

  Root root_of(const Operand& operand) {
    switch (operand.kind) {
      case Operand::Kind::kSymbol:
        return {.kind = Root::Kind::kNamed, .space = space_of(operand.text), .name = operand.text};
      case Operand::Kind::kRegister:
        return root_of_register(operand.text);
      case Operand::Kind::kNegated:
      case Operand::Kind::kVector:
        return unknown_root();
      default:
        return {};
    }
  }

  Root root_of_register(const std::string& name) {
    const auto found = flow_.registers.find(name);
    if (found == flow_.registers.end() || depth_ > kDeepest) return unknown_root();
    const auto [known, is_new] = roots_.emplace(name, Root{});
    if (!is_new) return known->second;  // of a register that is computed from itself: what the other ways say
    Root result;
    bool first = true;
    ++depth_;
    for (const Instruction* writer : writers_[static_cast<std::size_t>(found->second)]) {
      const Root one = root_of_result(*writer);
      result = first ? one : either(result, one);
      first = false;
    }
    --depth_;
    if (first) result = unknown_root();  // a parameter of a called function in a register
    return roots_[name] = result;
  }

  static bool is_wide(const Instruction& i) { return i.has("u64") || i.has("s64") || i.has("b64"); }

  Root root_of_result(const Instruction& i) {
    const auto& operands = i.operands;
    if (i.opcode == "ld") {
      if (!is_wide(i)) return {};
      const Operand* address = address_of(i);
      if (!i.has("param") || address == nullptr || address->items[0].kind != Operand::Kind::kSymbol ||
          params_.count(address->items[0].text) == 0)
        return unknown_root();
      return {.kind = Root::Kind::kNamed, .space = Space::kGlobal, .name = address->items[0].text};
    }
    if (opcode_kind(i.opcode) != OpcodeKind::kCompute)
      return is_wide(i) || i.opcode == "call" ? unknown_root() : Root{};
    if (i.opcode == "mov" || i.opcode == "cvt" || i.opcode == "cvta") {
      Root root = operands.size() == 2 ? root_of(operands[1]) : Root{};
      if (i.opcode == "cvta" && root.kind != Root::Kind::kNumber) {
        if (i.has("shared") || i.has("to.shared")) root.space = Space::kShared;
        if (i.has("local")) root.space = Space::kLocal;
      }
      return root;
    }
    if (i.opcode == "add" || i.opcode == "sub" || i.opcode == "and" || i.opcode == "or")
      return operands.size() == 3 ? sum(root_of(operands[1]), root_of(operands[2])) : Root{};
    if (i.opcode == "mad") return operands.size() == 4 ? root_of(operands[3]) : Root{};
    if (i.opcode == "selp") return operands.size() == 4 ? either(root_of(operands[1]), root_of(operands[2])) : Root{};
    return {};
  }

  /// The space that an access with this address goes to.
  static Space space(const Instruction& i, const Root& root) {
    if (i.has("shared") || i.has("shared::cta") || i.has("shared::cluster")) return Space::kShared;
    if (i.has("local")) return Space::kLocal;
    if (i.has("param") || i.has("const") || i.has("param::func") || i.has("param::entry")) return Space::kOther;
    return i.has("global") ? Space::kGlobal : root.space;
  }

  void add_place(const Instruction& i, Space space, const Root& root, bool reads, bool writes) {
    if (space != Space::kShared && space != Space::kLocal) return;
    const bool named = root.kind == Root::Kind::kNamed;
    (space == Space::kShared ? all_shared_ : all_local_) |= !named;
    places_[&i] = {space, named ? root.name : "", reads, writes};
  }

  void note(const Instruction& i) {
    if (i.opcode == "call") {
      const std::string target(call_target(i));
      std::uint16_t use = 0;
      if (!target.empty()) use = facts_.closure(target).memory;
      if (target.empty()) use = facts_.closure(function_.name).memory;  // what pointers may lead to is in there
      if (use != 0) out_.accesses[&i] = {use, {}};
      return;
    }
    const std::uint16_t use = memory_use(i);
    const Operand* address = address_of(i);
    if (address == nullptr) {
      if (use != 0) out_.accesses[&i] = {use, {}};
      return;
    }
    const bool matrix = i.opcode == "ldmatrix" || i.opcode == "stmatrix";
    if (i.opcode == "cp" && i.operands[0].kind == Operand::Kind::kAddress)
      add_place(i, Space::kShared, root_of(i.operands[0].items[0]), true, true);
    const Root root = root_of(address->items[0]);
    const Space where = i.opcode == "cp" ? Space::kGlobal : matrix ? Space::kShared : space(i, root);
    if (where == Space::kShared || where == Space::kLocal)
      return add_place(i, where, root, true, i.opcode != "ld" && i.opcode != "ldmatrix");
    if (use != 0) out_.accesses[&i] = {use, root.kind == Root::Kind::kNamed ? root.name : std::string()};
  }

  void add(FlowInstruction& i, const std::string& name, bool reads, bool writes) {
    if (reads) i.reads.push_back(number(name));
    if (writes) i.writes.push_back(number(name));
  }

  std::string place_name(const Place& place) const {
    const bool shared = place.space == Space::kShared;
    return (shared ? kSharedName : kLocalName) + ((shared ? all_shared_ : all_local_) ? std::string() : place.name);
  }

  void connect(FlowInstruction& i) {
    const Instruction& instruction = *i.instruction;
    if (const auto found = call_params_.find(&instruction); found != call_params_.end()) {
      for (const auto& [name, store] : found->second) add(i, name, !store || instruction.opcode == "st", store);
    }
    if (const auto found = places_.find(&instruction); found != places_.end())
      add(i, place_name(found->second), found->second.reads, found->second.writes);
    // A called function may write to variables whose addresses it was given.
    if (instruction.opcode != "call") return;
    const auto access = out_.accesses.find(&instruction);
    if (access == out_.accesses.end() || (access->second.use & kStores) == 0) return;
    std::set<std::string> names;
    for (const auto& [at, place] : places_) names.insert(place_name(place));
    for (const std::string& name : names) add(i, name, true, true);
  }

  const ModuleFacts& facts_;
  const Function& function_;
  MemoryFlow& out_;
  Flow& flow_;
  std::set<std::string> params_, locals_, shared_;
  int scopes_ = 0;
  int depth_ = 0;
  std::unordered_map<const Instruction*, std::vector<std::pair<std::string, bool>>> call_params_;
  std::vector<std::vector<const Instruction*>> writers_;
  std::unordered_map<std::string, Root> roots_;
  std::unordered_map<const Instruction*, Place> places_;
  bool all_shared_ = false, all_local_ = false;  ///< some address in that space is not known
};

}  // namespace

Result<MemoryFlow> build_memory_flow(const ModuleFacts& facts, const Function& function) {
  Result<Flow> flow = build_flow(function);
  if (!flow) return flow.error();
  MemoryFlow result{std::move(*flow), {}, {}, {}, {}};
  FlowOfMemory(facts, function, result).run();
  return result;
}

}  // namespace gpuctl::ptx
