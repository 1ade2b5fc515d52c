// Which instruction gives a register its value, where only one does.
#pragma once

#include <string>
#include <vector>

#include "ptx/analysis/flow.h"

namespace gpuctl::ptx {

/// Serves one flow, which must outlive it.
class Definitions {
 public:
  explicit Definitions(const Flow& flow);

  /// The only instruction that writes the register, and it writes it unconditionally. Null if there are several, or
  /// none.
  const Instruction* only(const std::string& name) const;
  /// The same, but null also if the instruction may run more than once: values computed from the register could then be
  /// older than the register's own.
  const Instruction* once(const std::string& name) const;

 private:
  struct Definition {
    const Instruction* instruction = nullptr;
    bool written = false;
    bool in_loop = false;
  };

  const Definition* find(const std::string& name) const;

  const Flow& flow_;
  std::vector<Definition> by_register_;
};

}  // namespace gpuctl::ptx
