#include "ptx/pass/refuse_unsupported.h"

#include <charconv>

#include "ptx/analysis/walk.h"
#include "ptx/persistent_abi.h"

namespace gpuctl::ptx::pass {
namespace {

constexpr std::uint32_t kMaxParamBytes = 4096;                     // of a kernel, on every architecture
constexpr std::uint32_t kMaxSharedBytes = 49152;                   // of static variables, on every architecture
constexpr std::uint32_t kOwnSharedBytes = kSharedWordsBytes + 16;  // the worker's words, and the padding they may cost
constexpr std::uint32_t kMinSm = 70;                               // the first with barrier without .aligned, and fence
constexpr std::uint32_t kMinPtx = 603;                             // the first with nanosleep

std::string check_target(const Module& module) {
  if (module.address_size != "64") return "address size is not 64";
  std::uint32_t major = 0, minor = 0;
  const char* const end = module.version.data() + module.version.size();
  const char* const dot = std::from_chars(module.version.data(), end, major).ptr;
  if (dot != end) std::from_chars(dot + 1, end, minor);
  if (major * 100 + minor < kMinPtx) return "PTX version " + module.version + " is too old (6.3 is needed)";
  std::uint32_t sm = 0;
  for (const std::string& target : module.targets) {
    if (target.starts_with("sm_")) std::from_chars(target.data() + 3, target.data() + target.size(), sm);
    if (target == "debug") return "compiled for the debugger (.target debug)";
  }
  if (sm < kMinSm) return "target sm_" + std::to_string(sm) + " is too old (sm_70 is needed)";
  return {};
}

/// Lays out the program's parameters as the driver does. Returns an empty string, or why it cannot.
std::string lay_out_params(Kernel& kernel) {
  std::uint32_t offset = 0;
  for (const Variable& param : kernel.original.params) {
    const std::optional<std::uint64_t> size = variable_bytes(param, param.names[0]);
    const std::uint32_t align = variable_align(param);
    if (!size || *size > kMaxParamBytes || (align & (align - 1)) != 0)
      return "parameter '" + param.names[0].name + "' has no plain size";
    offset = (offset + align - 1) & ~(align - 1);
    kernel.report.params.push_back({offset, static_cast<std::uint32_t>(*size), align});
    offset += static_cast<std::uint32_t>(*size);
  }
  kernel.report.params_bytes = offset;
  kernel.report.args_offset = (offset + alignof(LaunchArgs) - 1) & ~static_cast<std::uint32_t>(alignof(LaunchArgs) - 1);
  if (kernel.report.args_offset + sizeof(LaunchArgs) > kMaxParamBytes) return "parameters leave no room for ours";
  return {};
}

void add_shared(const std::vector<Statement>& body, std::uint64_t& bytes) {
  for (const Statement& statement : body) {
    if (const auto* scope = std::get_if<Scope>(&statement)) add_shared(scope->body, bytes);
    const auto* variable = std::get_if<Variable>(&statement);
    if (variable == nullptr || !variable->space.starts_with("shared")) continue;
    for (const Declarator& name : variable->names) {
      const std::uint64_t align = variable_align(*variable);
      bytes = (bytes + align - 1) / align * align + variable_bytes(*variable, name).value_or(0);
    }
  }
}

/// Static shared bytes of the entry, of its called functions, and of the module's variables that any of them names.
std::uint64_t shared_bytes(const Kernel& kernel) {
  std::uint64_t bytes = 0;
  std::set<std::string> named;
  std::vector<const Function*> functions{&kernel.original};
  for (const std::string& name : kernel.closure.functions) functions.push_back(kernel.facts.find(name)->function);
  for (const Function* function : functions) {
    add_shared(*function->body, bytes);
    for_each_instruction(*function->body, [&](const Instruction& instruction) {
      for (const Operand& operand : instruction.operands) {
        for_each_operand(operand, [&](const Operand& inner) {
          if (inner.kind == Operand::Kind::kSymbol && kernel.facts.is_shared_variable(inner.text))
            named.insert(inner.text);
        });
      }
    });
  }
  std::vector<Statement> variables;
  for (const Item& item : kernel.facts.module().items) {
    const auto* variable = std::get_if<Variable>(&item);
    if (variable == nullptr) continue;
    for (const Declarator& name : variable->names) {
      if (named.count(name.name) == 0) continue;
      Variable one = *variable;
      one.names = {name};
      variables.emplace_back(std::move(one));
    }
  }
  add_shared(variables, bytes);
  return bytes;
}

}  // namespace

Refused refuse_unsupported(Kernel& kernel) {
  EntryReport& report = kernel.report;
  report.reads_block_index = kernel.closure.grid_reads & (kReadsX | kReadsY | kReadsZ);
  report.uses_barrier = kernel.closure.has_barrier;
  report.uses_shared = kernel.closure.uses_shared;
  const std::uint64_t shared = shared_bytes(kernel);
  report.static_shared_bytes = static_cast<std::uint32_t>(shared);
  if (std::string reason = lay_out_params(kernel); !reason.empty()) return reason;
  if (std::string reason = check_target(kernel.facts.module()); !reason.empty()) return reason;
  if (!kernel.closure.refusal.empty()) return kernel.closure.refusal;
  report.words_behind = kernel.closure.uses_dynamic_shared || shared + kOwnSharedBytes > kMaxSharedBytes;
  if (report.words_behind && kernel.closure.reads_dynamic_size)
    return "reads %dynamic_smem_size, and ours must lie behind its shared memory";
  return {};
}

}  // namespace gpuctl::ptx::pass
