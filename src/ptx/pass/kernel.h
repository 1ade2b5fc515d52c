// What the passes of the rewriter work on: one entry on its way to its persistent form.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ptx/analysis/facts.h"
#include "ptx/persistent_abi.h"
#include "ptx/rewrite.h"

namespace gpuctl::ptx::pass {

/// A changed copy of a called function.
struct CopiedFunction {
  std::string original;  ///< its name
  Function function;
};

struct Kernel {
  const ModuleFacts& facts;
  const Function& original;
  const Closure& closure;  ///< of the original
  Function entry;          ///< becomes the added entry
  std::vector<CopiedFunction> functions;
  EntryReport report;
  std::optional<std::string> waits;  ///< why its blocks may wait for others (refuse_waiting_blocks)
  /// Set if one branch, before any barrier, decides for all threads of the block which of them return.
  struct ReturnBranch {
    std::size_t place;  ///< of the branch, among the instructions of the entry
    bool returns_if_taken;
  };
  std::optional<ReturnBranch> return_branch;
  /// The body for block-tasks in which no thread returns early, if there are two bodies (split_early_return).
  std::optional<std::vector<Statement>> plain_body;
  /// In plain_body, all threads meet at the branch, before they touch shared memory.
  bool meets_at_branch = false;
  /// All threads meet inside the body where none returns early, which is plain_body if there are two (meet_late).
  bool meets_inside = false;

  /// Name of the parameter that holds LaunchArgs.
  std::string args_name() const { return original.name + "__gpuslice_args"; }
};

/// One line that says why the kernel cannot be rewritten, or nothing.
using Refused = std::optional<std::string>;

// Names in rewritten functions. ModuleFacts refuses functions that use names with "gpuslice" themselves.
inline constexpr char kTaskEnd[] = "$gpuslice_task_end";
// Block-tasks go from the plain body to the entry's own body here, if there are two.
inline constexpr char kCrossing[] = "$gpuslice_crossing";
inline constexpr char kPlainTaskEnd[] = "$gpuslice_plain_task_end";  // of plain_body
inline constexpr char kCtaidRegister[] = "%gpuslice_ctaid_";         // + x, y, z
inline constexpr char kNctaidRegister[] = "%gpuslice_nctaid_";       // + x, y, z
inline constexpr char kSomeoneRegister[] = "%gpuslice_someone";      // predicate: some thread returns early
inline constexpr char kMeetFunction[] = "gpuslice_meet";             // join_finished_threads

}  // namespace gpuctl::ptx::pass
