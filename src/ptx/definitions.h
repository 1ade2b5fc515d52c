// Which instruction gives a register its value, where only one does.
#pragma once

#include <string>
#include <vector>

#include "ptx/flow.h"

namespace gpuctl::ptx {

/// Of a flow, which must outlive it.
class Definitions {
 public:
  explicit Definitions(const Flow& flow);

  /// The instruction that alone writes the register, whatever happens; null when there are several, or none.
  const Instruction* only(const std::string& name) const;
  /// The same, null too when it may be executed more than once: values computed from the register would be older than
  /// it.
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
