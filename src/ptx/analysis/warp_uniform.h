// Finds the values that are the same in all lanes of a warp, provided the block's x size is a multiple of 32 and the
// grid has fewer than 2^31 threads in x. Such a value is computed from the number of the warp, as `(ctaid.x * ntid.x +
// tid.x) / 32` is, or from what the lanes agreed on by a vote.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ptx/analysis/definitions.h"
#include "ptx/analysis/flow.h"
#include "ptx/analysis/taint.h"

namespace gpuctl::ptx::pass {

/// Serves one function, whose flow, divergence (find_warp_divergence) and definitions must outlive it.
class WarpUniformity {
 public:
  WarpUniformity(const Flow& flow, const Taint& divergence, const Definitions& definitions);

  /// Whether the register has the same value in all lanes of a warp.
  bool holds(const std::string& name);
  /// The same, but also where the block's x size is not a multiple of 32.
  bool holds_in_any_block(const std::string& name) const;

 private:
  enum class Kind {
    kUnknown,
    kUniform,  ///< the same in all lanes of a warp
    kLane,     ///< the sum of a multiple of 32 that is the same in all lanes and the lane's number: not negative
    kZero,     ///< the sign bits of a kLane value
  };

  Kind kind_of(const Operand& operand);
  Kind of_register(const std::string& name);
  Kind of_result(const Instruction& i);
  static Kind of_special(const Operand& special);
  bool is_aligned(const Operand& operand) const;

  const Flow& flow_;
  const Taint& divergence_;
  const Definitions& definitions_;
  std::vector<char> apart_;            ///< by register: written where lanes that parted may not have met again
  std::map<std::string, Kind> kinds_;  ///< by register, as far as known
};

}  // namespace gpuctl::ptx::pass
