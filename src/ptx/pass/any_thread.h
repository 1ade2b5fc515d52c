// Whether a condition holds for some thread of the block, found out by each thread alone: no barrier.
//
// That works for the usual bounds checks: comparisons of what rises with the thread's index, as `ctaid.x * ntid.x +
// tid.x` does, against what all threads of the block agree on. It rises from the first thread to the last, so these two
// decide.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ptx/syntax.h"

namespace gpuctl::ptx::pass {

/// Instructions that set the predicate `result`, in all threads of the block alike: true if `condition`, as it is
/// behind all that came before, holds for some thread, and in rare cases too when it holds for none (where the index
/// wraps around, or of several comparisons joined by `and` each holds for another thread). They use registers called
/// %gpuslice_any..., which they declare. Nothing when the condition is of another kind.
std::optional<std::vector<Statement>> any_thread(const Function& function, const Guard& condition,
                                                 const std::string& result);

}  // namespace gpuctl::ptx::pass
