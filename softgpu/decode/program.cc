// Turns a parsed module into a Program.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <variant>

#include "softgpu/decode/decoder.h"

namespace gpuctl::softgpu::engine {
namespace {

/// Additional local memory of a thread if functions call themselves or through pointers, in bytes.
constexpr std::uint32_t kRecursionBytes = 32768;

/// Registers that an assembler needs besides the values of the program: for the stack pointer, folded addresses, and
/// alignment of pairs.
constexpr std::uint32_t kSpareRegisters = 8;

struct Reach {
  std::map<const Function*, std::uint32_t> functions;  ///< and the local bytes of the deepest chain from there
  bool recursive = false;
  bool pointers = false;
};

/// Walks the calls from `function`; returns the local bytes of the deepest chain that does not repeat a function.
std::uint32_t walk_calls(const Function& function, std::vector<const Function*>& path, Reach& reach) {
  if (const auto known = reach.functions.find(&function); known != reach.functions.end()) return known->second;
  reach.pointers |= function.calls_pointer;
  path.push_back(&function);
  std::uint32_t deepest = 0;
  for (const Function* callee : function.callees) {
    if (std::find(path.begin(), path.end(), callee) != path.end())
      reach.recursive = true;
    else
      deepest = std::max(deepest, walk_calls(*callee, path, reach));
  }
  path.pop_back();
  return reach.functions[&function] = function.local_bytes + deepest;
}

std::uint32_t number(const std::vector<std::string>& tokens, std::size_t index, std::uint32_t otherwise) {
  // `.maxntid 256, 1, 1`: numbers and commas after the name.
  std::size_t seen = 0;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    if (tokens[i] == ",") continue;
    if (seen++ == index) return static_cast<std::uint32_t>(std::strtoul(tokens[i].c_str(), nullptr, 0));
  }
  return otherwise;
}

void read_directives(const ptx::Function& source, Kernel& kernel) {
  for (const ptx::Directive& directive : source.directives) {
    const auto value = [&](std::size_t i, std::uint32_t otherwise) { return number(directive.tokens, i, otherwise); };
    if (directive.name() == ".maxntid" || directive.name() == ".reqntid") {
      const Dim3 shape{value(0, 1), value(1, 1), value(2, 1)};
      kernel.max_threads = std::min(1024u, shape.x * shape.y * shape.z);
      if (directive.name() == ".reqntid") kernel.required = shape;
    } else if (directive.name() == ".reqnctapercluster") {
      kernel.cluster = {value(0, 1), value(1, 1), value(2, 1)};
    } else if (directive.name() == ".minnctapersm") {
      kernel.min_blocks_per_sm = value(0, 0);
    } else if (directive.name() == ".maxnreg") {
      kernel.registers = std::min(kernel.registers, value(0, 255));
    }
  }
}

void read_parameters(const ptx::Function& source, Kernel& kernel) {
  for (const ptx::Variable& variable : source.params) {
    const std::uint32_t align = ptx::variable_align(variable);
    const auto size = static_cast<std::uint32_t>(ptx::variable_bytes(variable, variable.names.front()).value_or(0));
    const std::uint32_t offset = (kernel.param_bytes + align - 1) / align * align;
    kernel.params.push_back({offset, size, align});
    kernel.param_bytes = offset + size;
  }
}

class Compiler {
 public:
  Compiler(const ptx::Module& module, Program::Impl& program) : module_(module), program_(program) {}

  void run() {
    declare_functions();
    ModuleSymbols symbols(module_, program_);
    for (const bool entries : {false, true})  // helpers first: their shared variables come before those of entries
      for (const auto& [function, source] : sources_)
        if (function->entry == entries) decode(*source, *function, symbols);
    place_pool();
    for (const auto& [function, source] : sources_)
      if (function->entry) finish_kernel(*source, *function, symbols);
  }

 private:
  void declare_functions() {
    for (const ptx::Item& item : module_.items) {
      const auto* source = std::get_if<ptx::Function>(&item);
      if (source == nullptr) continue;
      Function*& function = by_name_[source->name];
      if (function == nullptr) {
        program_.functions.push_back(std::make_unique<Function>());
        function = program_.functions.back().get();
        function->name = source->name;
      }
      if (!source->body) continue;
      if (function->defined) throw DecodeError{source->line, "function " + source->name + " is defined twice"};
      function->defined = true;
      function->entry = source->is_entry;
      sources_.emplace_back(function, source);
    }
  }

  void decode(const ptx::Function& source, Function& function, ModuleSymbols& symbols) {
    Decoder decoder(source, function, symbols, pool_, program_);
    std::vector<Instruction> code;
    try {
      code = decoder.run();
    } catch (const DecodeError& e) {
      function.error = "line " + std::to_string(e.line) + ": " + e.message;
      return;
    }
    function.live_words = decoder.live_words(code);
    function.first = static_cast<std::uint32_t>(program_.code.size());
    function.count = static_cast<std::uint32_t>(code.size());
    for (Instruction& in : code)
      if (in.kind == Kind::kBranch) in.target += function.first;
    for (const std::uint32_t table : decoder.tables())
      for (std::uint32_t& entry : program_.branch_tables[table]) entry += function.first;
    program_.code.insert(program_.code.end(), code.begin(), code.end());
    shared_end_[&function] = decoder.shared_end();
    if (!function.entry) symbols.extend_common(decoder.shared_end());
  }

  void place_pool() {
    const std::vector<std::uint64_t> words = pool_.take();
    const std::size_t bytes = (words.size() * 8 + 4095) / 4096 * 4096 + 4096;
    program_.pool = static_cast<std::byte*>(std::aligned_alloc(4096, bytes));
    if (program_.pool == nullptr) throw DecodeError{0, "no memory for constants"};
    if (!words.empty()) std::memcpy(program_.pool, words.data(), words.size() * 8);
  }

  void finish_kernel(const ptx::Function& source, Function& function, const ModuleSymbols& symbols) {
    auto kernel = std::make_unique<Kernel>();
    kernel->name = function.name;
    kernel->code = &function;
    Reach reach;
    std::vector<const Function*> path;
    kernel->local_bytes = walk_calls(function, path, reach);
    std::string error;
    std::uint32_t registers = 0;
    bool uses_shared = reach.pointers;
    for (const auto& [reached, bytes] : reach.functions) {
      if (error.empty()) error = reached->error;
      registers = std::max(registers, reached->live_words);
      uses_shared |= reached->uses_shared;
    }
    if (!function.error.empty()) error = function.error;
    function.stack_bytes = kernel->local_bytes + (reach.recursive || reach.pointers ? kRecursionBytes : 0);
    if (uses_shared || shared_end_[&function] > symbols.common_end()) kernel->static_shared = shared_end_[&function];
    kernel->registers = std::clamp(registers + kSpareRegisters, 16u, 255u);
    for (const auto& named : program_.symbols)
      if (named.symbol.constant) kernel->const_bytes += static_cast<std::uint32_t>(named.symbol.size);
    read_parameters(source, *kernel);
    read_directives(source, *kernel);
    program_.kernel_names.push_back(function.name);
    program_.kernel_errors.push_back(error.empty() ? error : "kernel " + function.name + ": " + error);
    program_.kernels.push_back(std::move(kernel));
  }

  const ptx::Module& module_;
  Program::Impl& program_;
  std::unordered_map<std::string, Function*> by_name_;
  std::vector<std::pair<Function*, const ptx::Function*>> sources_;
  std::unordered_map<const Function*, std::uint32_t> shared_end_;
  ConstantPool pool_;
};

}  // namespace

Program::Impl::~Impl() {
  std::free(pool);
  std::free(memory);
}

Program::Program(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Program::~Program() = default;

Result<std::shared_ptr<const Program>> Program::compile(const ptx::Module& module) {
  auto impl = std::make_unique<Impl>();
  try {
    if (module.address_size == "32") throw DecodeError{0, "32-bit addresses are not supported"};
    Compiler(module, *impl).run();
  } catch (const DecodeError& e) {
    return fail((e.line != 0 ? "PTX line " + std::to_string(e.line) + ": " : "PTX module: ") + e.message);
  }
  return std::shared_ptr<const Program>(new Program(std::move(impl)));
}

Result<const Kernel*> Program::kernel(std::string_view name) const {
  for (std::size_t i = 0; i < impl_->kernels.size(); ++i) {
    if (impl_->kernels[i]->name != name) continue;
    if (!impl_->kernel_errors[i].empty()) return fail(impl_->kernel_errors[i]);
    return impl_->kernels[i].get();
  }
  return fail("no kernel " + std::string(name) + " in the module");
}

const std::vector<std::string>& Program::kernel_names() const {
  return impl_->kernel_names;
}

const Symbol* Program::symbol(std::string_view name) const {
  for (const auto& named : impl_->symbols)
    if (named.name == name) return &named.symbol;
  return nullptr;
}

std::vector<std::string> Program::symbol_names() const {
  std::vector<std::string> names;
  for (const auto& named : impl_->symbols) names.push_back(named.name);
  return names;
}

}  // namespace gpuctl::softgpu::engine
