// Which values all lanes of a warp agree on, if the block's x size is a multiple of 32 and the grid has fewer than 2^31
// threads in x: what is computed from the number of the warp. `(ctaid.x * ntid.x + tid.x) / 32` is one.
#pragma once

#include <map>
#include <string>

#include "ptx/analysis/definitions.h"
#include "ptx/analysis/flow.h"
#include "ptx/analysis/taint.h"

namespace gpuctl::ptx::pass {

/// Of one function, whose flow and divergence (find_divergence) must outlive it.
class WarpUniformity {
 public:
  WarpUniformity(const Flow& flow, const Taint& divergence, const Definitions& definitions)
      : flow_(flow), divergence_(divergence), definitions_(definitions) {}

  /// Whether the lanes agree on that register.
  bool holds(const std::string& name);

 private:
  enum class Kind {
    kUnknown,
    kUniform,  ///< the same in all lanes of a warp
    kLane,     ///< a multiple of 32, the same in all lanes, and the lane's number: not negative
    kZero,     ///< the sign of such
  };

  Kind kind_of(const Operand& operand);
  Kind of_register(const std::string& name);
  Kind of_result(const Instruction& i);
  static Kind of_special(const Operand& special);
  bool is_aligned(const Operand& operand) const;

  const Flow& flow_;
  const Taint& divergence_;
  const Definitions& definitions_;
  std::map<std::string, Kind> kinds_;  ///< by register, as far as known
};

}  // namespace gpuctl::ptx::pass
