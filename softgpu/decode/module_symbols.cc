// Module-scope variables.
//
// `.global` and `.const` variables go into one allocation of the program. Shared variables that a `.func` names have
// one place in every block, at the front. Those that only entries name come after them. They are laid out for each
// entry separately, so that a kernel pays only for its own.
#include "softgpu/decode/module_symbols.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <variant>

namespace gpuctl::softgpu::engine {
namespace {

constexpr std::size_t kVariableAlign = 256;
constexpr std::size_t kSharedAlign = 128;  // of the part after the common one: enough for any PTX variable

void collect_names(const ptx::Operand& operand, std::set<std::string>& names) {
  if (operand.kind == ptx::Operand::Kind::kSymbol) names.insert(operand.text);
  for (const ptx::Operand& item : operand.items) collect_names(item, names);
}
void collect_names(const std::vector<ptx::Statement>& body, std::set<std::string>& names) {
  for (const ptx::Statement& statement : body) {
    if (const auto* instruction = std::get_if<ptx::Instruction>(&statement)) {
      for (const ptx::Operand& operand : instruction->operands) collect_names(operand, names);
    } else if (const auto* scope = std::get_if<ptx::Scope>(&statement)) {
      collect_names(scope->body, names);
    }
  }
}

template <class F>
void for_each_function(const ptx::Module& module, F f) {
  for (const ptx::Item& item : module.items)
    if (const auto* function = std::get_if<ptx::Function>(&item); function != nullptr && function->body) f(*function);
}
template <class F>
void for_each_variable(const ptx::Module& module, F f) {
  for (const ptx::Item& item : module.items)
    if (const auto* variable = std::get_if<ptx::Variable>(&item)) f(*variable);
}

}  // namespace

ModuleSymbols::ModuleSymbols(const ptx::Module& module, Program::Impl& program) {
  for (const auto& function : program.functions) functions_[function->name] = function.get();
  std::size_t bytes = 0;
  for_each_variable(module, [&](const ptx::Variable& v) { lay_out(v, bytes, program); });
  lay_out_shared(module);
  if (bytes != 0) {
    program.memory_bytes = round_up(bytes, kVariableAlign);
    program.memory = static_cast<std::byte*>(std::aligned_alloc(4096, round_up(program.memory_bytes, 4096)));
    if (program.memory == nullptr) throw DecodeError{0, "no memory for the variables of the module"};
    std::memset(program.memory, 0, program.memory_bytes);
  }
  const auto base = reinterpret_cast<std::uint64_t>(program.memory);
  for (auto& [name, symbol] : variables_) symbol.address += base;
  for (auto& named : program.symbols) named.symbol.address += base;
  for_each_variable(module, [&](const ptx::Variable& v) { initialise(v); });
}

void ModuleSymbols::lay_out(const ptx::Variable& variable, std::size_t& bytes, Program::Impl& program) {
  if (variable.space != "global" && variable.space != "const") return;
  for (const ptx::Declarator& name : variable.names) {
    const std::optional<std::uint64_t> size = ptx::variable_bytes(variable, name);
    if (variable.is_extern || variable.type == "texref" || variable.type == "samplerref" || variable.type == "surfref")
      continue;  // code that names it gets an error there
    if (!size) throw DecodeError{variable.line, "variable " + name.name + " has no size"};
    bytes = round_up(bytes, std::max<std::size_t>(kVariableAlign, ptx::variable_align(variable)));
    const Symbol symbol{bytes, *size, variable.space == "const"};
    variables_[name.name] = symbol;
    program.symbols.push_back({name.name, symbol});
    bytes += *size;
  }
}

void ModuleSymbols::lay_out_shared(const ptx::Module& module) {
  std::set<std::string> by_helpers;
  for_each_function(module, [&](const ptx::Function& function) {
    if (!function.is_entry) collect_names(*function.body, by_helpers);
  });
  const auto place = [](const ptx::Variable& variable, const ptx::Declarator& name, std::uint32_t& end) {
    const std::uint32_t size = static_cast<std::uint32_t>(*ptx::variable_bytes(variable, name));
    const std::uint32_t offset = static_cast<std::uint32_t>(round_up(end, ptx::variable_align(variable)));
    end = offset + size;
    return SharedVariable{offset, size, false};
  };
  for_each_variable(module, [&](const ptx::Variable& variable) {
    if (variable.space != "shared") return;
    for (const ptx::Declarator& name : variable.names) {
      if (!ptx::variable_bytes(variable, name) || variable.is_extern)
        shared_[name.name] = {0, 0, true};
      else if (by_helpers.count(name.name) != 0)
        shared_[name.name] = place(variable, name, common_end_);
    }
  });
  for_each_function(module, [&](const ptx::Function& function) {
    if (!function.is_entry) return;
    std::set<std::string> names;
    collect_names(*function.body, names);
    Own& own = own_[function.name];
    for_each_variable(module, [&](const ptx::Variable& variable) {
      if (variable.space != "shared") return;
      for (const ptx::Declarator& name : variable.names)
        if (names.count(name.name) != 0 && shared_.count(name.name) == 0)
          own.variables[name.name] = place(variable, name, own.end);
    });
  });
}

void ModuleSymbols::initialise(const ptx::Variable& variable) {
  for (const ptx::Declarator& name : variable.names) {
    const auto found = variables_.find(name.name);
    if (found == variables_.end() || !name.init) continue;
    std::uint64_t at = found->second.address;
    write(variable, *name.init, at, at + found->second.size, ptx::type_bytes(variable.type));
  }
}

void ModuleSymbols::write(const ptx::Variable& variable, const ptx::Initializer& init, std::uint64_t& at,
                          std::uint64_t end, std::uint32_t element) {
  using Kind = ptx::Initializer::Kind;
  if (init.kind == Kind::kList) {
    for (const ptx::Initializer& item : init.items) write(variable, item, at, end, element);
    return;
  }
  std::uint64_t value = init.bits;
  if (init.kind == Kind::kSymbol) {
    if (const Symbol* symbol = this->variable(init.symbol)) {
      value = symbol->address;
    } else if (const Function* function = this->function(init.symbol)) {
      const_cast<Function*>(function)->address_taken = true;
      value = address_of(*function);
    } else {
      throw DecodeError{variable.line, "initialiser names unknown symbol " + init.symbol};
    }
    value += static_cast<std::uint64_t>(init.offset);
    if (init.mask != 0) value = (value & init.mask) >> __builtin_ctzll(init.mask);
  } else if (init.kind == Kind::kFloat && init.width == 64 && variable.type == "f32") {
    const float narrow = static_cast<float>(__builtin_bit_cast(double, init.bits));
    value = __builtin_bit_cast(std::uint32_t, narrow);
  } else if (init.kind == Kind::kFloat && init.width == 32 && variable.type == "f64") {
    value = __builtin_bit_cast(std::uint64_t,
                               static_cast<double>(__builtin_bit_cast(float, static_cast<std::uint32_t>(init.bits))));
  } else if (init.kind != Kind::kNumber && init.kind != Kind::kFloat) {
    throw DecodeError{variable.line, "initialiser of a kind that is not supported"};
  }
  if (at + element > end) throw DecodeError{variable.line, "initialiser is longer than its variable"};
  std::memcpy(reinterpret_cast<void*>(at), &value, std::min<std::size_t>(element, sizeof value));
  at += element;
}

const Symbol* ModuleSymbols::variable(const std::string& name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : &found->second;
}
std::optional<SharedVariable> ModuleSymbols::shared(const std::string& name, const std::string& function) const {
  if (const auto common = shared_.find(name); common != shared_.end()) return common->second;
  const auto own = own_.find(function);
  if (own == own_.end()) return std::nullopt;
  const auto found = own->second.variables.find(name);
  if (found == own->second.variables.end()) return std::nullopt;
  SharedVariable result = found->second;
  result.offset += common_end();
  return result;
}

std::uint32_t ModuleSymbols::common_end() const {
  return static_cast<std::uint32_t>(round_up(common_end_, kSharedAlign));
}

std::uint32_t ModuleSymbols::own_end(const std::string& function) const {
  const auto own = own_.find(function);
  return own == own_.end() || own->second.end == 0 ? 0 : common_end() + own->second.end;
}

Function* ModuleSymbols::function(const std::string& name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : found->second;
}

OperandRef ConstantPool::word32(std::uint32_t value) {
  const auto [found, added] = known32_.emplace(value, 0);
  if (added) {
    found->second = operand_ref(Base::kPool, static_cast<std::uint32_t>(words_.size() * 8));
    words_.insert(words_.end(), kSlot32 / 8, std::uint64_t{value} << 32 | value);
  }
  return found->second;
}
OperandRef ConstantPool::word64(std::uint64_t value) {
  const auto [found, added] = known64_.emplace(value, 0);
  if (added) {
    found->second = operand_ref(Base::kPool, static_cast<std::uint32_t>(words_.size() * 8));
    words_.insert(words_.end(), kSlot64 / 8, value);
  }
  return found->second;
}

}  // namespace gpuctl::softgpu::engine
