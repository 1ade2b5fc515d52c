// The names of a module and their places: variables in memory, shared variables in their window, functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptx/syntax/syntax.h"
#include "softgpu/engine/code.h"

namespace gpuctl::softgpu::engine {

/// A mistake in the text being decoded.
struct DecodeError {
  std::uint32_t line;
  std::string message;
};

struct SharedVariable {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  bool dynamic = false;  ///< `extern .shared x[]`: lies behind all others
};

class ModuleSymbols {
 public:
  /// Lays out and initialises the module's variables into `program`; functions must be in program.functions already.
  /// Throws DecodeError.
  ModuleSymbols(const ptx::Module& module, Program::Impl& program);

  const Symbol* variable(const std::string& name) const;
  /// A shared variable of the module as `function` sees it.
  std::optional<SharedVariable> shared(const std::string& name, const std::string& function) const;
  Function* function(const std::string& name) const;

  /// The value of a function's name.
  static std::uint64_t address_of(const Function& function) { return reinterpret_cast<std::uint64_t>(&function); }

  /// End of the shared variables of helper functions; variables declared inside helpers are added as these are decoded.
  std::uint32_t common_end() const;
  void extend_common(std::uint32_t end) { common_end_ = end; }
  /// End of the shared variables of the module that only this entry names; 0 if it has none.
  std::uint32_t own_end(const std::string& function) const;

 private:
  void lay_out(const ptx::Variable& variable, std::size_t& bytes, Program::Impl& program);
  void lay_out_shared(const ptx::Module& module);
  void initialise(const ptx::Variable& variable);
  void write(const ptx::Variable& variable, const ptx::Initializer& init, std::uint64_t& at, std::uint64_t end,
             std::uint32_t element);

  std::unordered_map<std::string, Symbol> variables_;
  struct Own {
    std::unordered_map<std::string, SharedVariable> variables;
    std::uint32_t end = 0;
  };
  std::unordered_map<std::string, SharedVariable> shared_;
  std::unordered_map<std::string, Own> own_;
  std::uint32_t common_end_ = 0;
  std::unordered_map<std::string, Function*> functions_;
};

/// Constants, one copy for each lane, shared by all functions of a program.
class ConstantPool {
 public:
  OperandRef word32(std::uint32_t value);
  OperandRef word64(std::uint64_t value);
  OperandRef predicate(bool value) { return word32(value ? 0xffffffff : 0); }
  std::vector<std::uint64_t> take() { return std::move(words_); }

 private:
  std::map<std::uint32_t, OperandRef> known32_;
  std::map<std::uint64_t, OperandRef> known64_;
  std::vector<std::uint64_t> words_;
};

}  // namespace gpuctl::softgpu::engine
