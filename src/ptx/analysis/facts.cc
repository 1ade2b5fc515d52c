#include "ptx/analysis/facts.h"

#include <algorithm>

#include "ptx/analysis/memory_use.h"
#include "ptx/analysis/walk.h"
#include "ptx/persistent_abi.h"
#include "ptx/syntax/opcode.h"

namespace gpuctl::ptx {
namespace {

/// Functions of the device runtime that have no body in PTX and wait for no other thread.
constexpr std::string_view kHarmlessExterns[] = {"vprintf", "malloc", "free", "__assertfail"};

/// Predefined registers that a block-task may read in any worker.
bool is_harmless_special(std::string_view name) {
  static constexpr std::string_view kNames[] = {"%tid",         "%ntid",           "%laneid",      "%warpid",
                                                "%nwarpid",     "%smid",           "%nsmid",       "%clock",
                                                "%clock_hi",    "%clock64",        "%globaltimer", "%globaltimer_lo",
                                                "%lanemask_eq", "%lanemask_le",    "%lanemask_lt", "%lanemask_ge",
                                                "%lanemask_gt", "%globaltimer_hi", "WARP_SZ"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

std::string special_refusal(const std::string& name) {
  if (name == "%gridid") return "reads %gridid";
  if (name.starts_with("%envreg")) return "reads " + name + " (cooperative grid synchronization)";
  if (name.find("cluster") != name.npos) return "uses thread block clusters";
  return "reads " + name;
}

/// Bit for component x, y or z; all three for none (the whole vector).
std::uint8_t component_bits(const std::string& component) {
  if (component.empty()) return kReadsCtaidX | kReadsCtaidY | kReadsCtaidZ;
  return component == "x" ? kReadsCtaidX : component == "y" ? kReadsCtaidY : component == "z" ? kReadsCtaidZ : 0;
}

std::string directive_refusal(const Directive& directive) {
  for (const char* name : {".explicitcluster", ".reqnctapercluster", ".maxclusterrank", ".blocksareclusters"}) {
    if (directive.name() == name) return "uses thread block clusters";
  }
  return {};
}

void note_variables(const std::vector<Statement>& body, std::set<std::string>& shared, bool& reserved) {
  for (const Statement& statement : body) {
    if (const auto* scope = std::get_if<Scope>(&statement)) {
      note_variables(scope->body, shared, reserved);
    } else if (const auto* label = std::get_if<Label>(&statement)) {
      reserved = reserved || label->name.find("gpuslice") != label->name.npos;
    } else if (const auto* variable = std::get_if<Variable>(&statement)) {
      for (const Declarator& name : variable->names) {
        reserved = reserved || name.name.find("gpuslice") != name.name.npos;
        if (variable->space.starts_with("shared")) shared.insert(name.name);
      }
    }
  }
}

void merge(Closure& closure, const FunctionFacts& facts) {
  closure.grid_reads |= facts.grid_reads;
  closure.has_barrier |= facts.has_barrier;
  closure.has_other_barrier |= facts.has_other_barrier;
  closure.has_warp_sync |= facts.has_warp_sync;
  closure.memory |= facts.memory;
  closure.uses_shared |= facts.uses_shared;
  closure.uses_dynamic_shared |= facts.uses_dynamic_shared;
  closure.reads_dynamic_size |= facts.reads_dynamic_size;
  closure.uses_async_copy |= facts.uses_async_copy;
  closure.calls_indirectly |= facts.calls_indirectly;
}

}  // namespace

ModuleFacts::ModuleFacts(const Module& module) : module_(module) {
  for (const Item& item : module.items) {
    if (const auto* function = std::get_if<Function>(&item)) {
      names_.insert(function->name);
    } else if (const auto* variable = std::get_if<Variable>(&item)) {
      for (const Declarator& name : variable->names) {
        if (!variable->space.starts_with("shared")) continue;
        shared_.insert(name.name);
        if (variable->is_extern) dynamic_shared_.insert(name.name);
      }
    }
  }
  for (const Item& item : module.items) {
    if (const auto* variable = std::get_if<Variable>(&item)) {
      for (const Declarator& name : variable->names) {
        if (name.init) note_addresses(*name.init);
      }
    } else if (const auto* directive = std::get_if<Directive>(&item)) {
      // A call may name the alias, which has no body, instead of its target.
      if (directive->name() == ".alias") address_taken_.insert(directive->tokens.begin(), directive->tokens.end());
    }
  }
  for (const Item& item : module.items) {
    const auto* function = std::get_if<Function>(&item);
    if (function == nullptr || !function->body) continue;
    functions_[function->name] = read(*function);
    for_each_instruction(*function->body, [&](const Instruction& instruction) {
      const std::string_view target = instruction.opcode == "call" ? call_target(instruction) : std::string_view();
      for (const Operand& operand : instruction.operands) {
        for_each_operand(operand, [&](const Operand& inner) {
          if (inner.kind != Operand::Kind::kSymbol || names_.count(inner.text) == 0) return;
          if (inner.text.data() != target.data()) address_taken_.insert(inner.text);
        });
      }
    });
  }
}

void ModuleFacts::note_addresses(const Initializer& init) {
  if (init.kind == Initializer::Kind::kSymbol && names_.count(init.symbol) != 0) address_taken_.insert(init.symbol);
  if (init.kind == Initializer::Kind::kOther) address_taken_.insert(init.tokens.begin(), init.tokens.end());
  for (const Initializer& item : init.items) note_addresses(item);
}

FunctionFacts ModuleFacts::read(const Function& function) const {
  FunctionFacts facts;
  facts.function = &function;
  const auto refuse = [&](std::string reason) {
    if (facts.refusal.empty()) facts.refusal = std::move(reason);
  };
  for (const Directive& directive : function.directives) refuse(directive_refusal(directive));
  std::set<std::string> shared;
  bool reserved = false;
  note_variables(*function.body, shared, reserved);
  for (const Variable& param : function.params)
    reserved = reserved || param.names[0].name.find("gpuslice") != std::string::npos;
  if (reserved) refuse("uses names reserved for the rewriter (gpuslice)");
  facts.uses_shared = !shared.empty();

  for_each_instruction(*function.body, [&](const Instruction& instruction) {
    Refusal refusal = ptx::refusal(instruction);
    if (!refusal.once) {
      refuse(std::move(refusal.reason));
    } else if (facts.once.empty()) {
      facts.once = std::move(refusal.reason);
    }
    if (is_barrier(instruction)) {
      facts.has_barrier = true;
      if (!is_block_barrier(instruction) || !instruction.has("sync")) facts.has_other_barrier = true;
    }
    facts.has_warp_sync |= is_warp_sync(instruction);
    facts.memory |= memory_use(instruction);
    facts.uses_async_copy |= instruction.opcode == "cp";
    facts.uses_shared |= instruction.has("shared") || instruction.has("shared::cta");
    if (instruction.opcode == "exit" && !function.is_entry) refuse("a called function ends its thread (exit)");
    if (instruction.opcode == "call") {
      const std::string_view target = call_target(instruction);
      if (target.empty()) {
        facts.calls_indirectly = true;
      } else {
        facts.calls.emplace(target);
      }
    }
    for (const Operand& operand : instruction.operands) {
      for_each_operand(operand, [&](const Operand& inner) {
        if (inner.kind == Operand::Kind::kSymbol) {
          facts.uses_shared |= shared_.count(inner.text) != 0;
          facts.uses_dynamic_shared |= dynamic_shared_.count(inner.text) != 0;
        } else if (inner.kind == Operand::Kind::kRegister && !inner.offset_text.empty()) {
          refuse("adds a number to a register where it is read ('" + inner.text + inner.offset_text + "')");
        } else if (inner.kind == Operand::Kind::kSpecial) {
          if (inner.text == "%ctaid") {
            facts.grid_reads |= component_bits(inner.component);
          } else if (inner.text == "%nctaid") {
            facts.grid_reads |= static_cast<std::uint8_t>(component_bits(inner.component) << 3);
          } else if (inner.text == "%dynamic_smem_size") {
            facts.reads_dynamic_size = true;
          } else if (!is_harmless_special(inner.text)) {
            refuse(special_refusal(inner.text));
          }
        }
      });
    }
  });
  return facts;
}

const FunctionFacts* ModuleFacts::find(std::string_view name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : &found->second;
}

const Closure& ModuleFacts::closure(const std::string& start) const {
  if (const auto found = closures_.find(start); found != closures_.end()) return found->second;
  Closure closure;
  bool pointers_followed = false;
  std::vector<std::string> work{start};
  const auto visit = [&](const std::string& name) {
    if (closure.functions.insert(name).second) work.push_back(name);
  };
  bool first = true;
  while (!work.empty()) {
    const std::string name = work.back();
    work.pop_back();
    const FunctionFacts* facts = find(name);
    if (facts == nullptr) {
      closure.functions.erase(name);
      const bool harmless =
          std::find(std::begin(kHarmlessExterns), std::end(kHarmlessExterns), name) != std::end(kHarmlessExterns);
      const bool launches = name.starts_with("cudaLaunchDevice") || name.starts_with("cudaGetParameterBuffer");
      closure.whole = closure.whole && harmless;
      if (!harmless && closure.refusal.empty()) {
        closure.refusal =
            launches ? "launches kernels itself (dynamic parallelism)" : "calls '" + name + "', which has no body here";
      }
      continue;
    }
    merge(closure, *facts);
    const auto note = [&](const std::string& reason, std::string& of_all) {
      if (!reason.empty() && of_all.empty()) of_all = first ? reason : "calls '" + name + "': " + reason;
    };
    note(facts->refusal, closure.refusal);
    note(facts->once, closure.once);
    first = false;
    for (const std::string& callee : facts->calls) visit(callee);
    if (facts->calls_indirectly && !pointers_followed) {
      pointers_followed = true;
      for (const std::string& target : address_taken_) {
        const FunctionFacts* target_facts = find(target);
        if (target_facts == nullptr || target_facts->function->is_entry) continue;
        closure.by_address.insert(target);
        visit(target);
      }
    }
  }
  return closures_.emplace(start, std::move(closure)).first->second;
}

}  // namespace gpuctl::ptx
