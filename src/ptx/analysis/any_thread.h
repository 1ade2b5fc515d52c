// Lets each thread find out alone, without a barrier, whether a condition holds for any thread of the block.
//
// This works for the usual bounds checks: comparisons of a value that rises with the thread's index, as `ctaid.x *
// ntid.x + tid.x` does, with a value that is the same in all threads of the block. The first value rises from the first
// thread to the last, so these two threads decide.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ptx/syntax/syntax.h"

namespace gpuctl::ptx::pass {

/// Instructions that set the predicate `result` to the same value in all threads of the block: true if `condition`,
/// evaluated after all instructions of `function` before it, holds for some thread. In rare cases it is true although
/// the condition holds for none: where the index wraps around, or where several comparisons joined by `and` hold each
/// for a different thread. The instructions use registers called %gpuslice_any..., which they declare. Nothing if the
/// condition is of another kind.
std::optional<std::vector<Statement>> any_thread(const Function& function, const Guard& condition,
                                                 const std::string& result);

}  // namespace gpuctl::ptx::pass
