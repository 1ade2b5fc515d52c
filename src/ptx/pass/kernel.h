// What the passes of the rewriter work on: one entry on its way to its persistent or guarded form.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ptx/facts.h"
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
  /// Its blocks run one block-task each: it becomes guarded.
  bool once() const { return !closure.once.empty(); }
  /// Set when one branch decides for all threads of the block, before any barrier, who returns: its place among the
  /// instructions of the entry, and whether a thread returns when the branch is taken.
  struct ReturnBranch {
    std::size_t place;
    bool returns_if_taken;
  };
  std::optional<ReturnBranch> return_branch;
  /// The body for block-tasks in which nobody returns early, when there are two (split_early_return).
  std::optional<std::vector<Statement>> plain_body;
  /// All threads meet in that body, at its branch, before they touch shared memory.
  bool meets_at_branch = false;
  /// They meet in the body where nobody returns early, which is plain_body if there are two (meet_late).
  bool meets_inside = false;

  /// Parameter that holds LaunchArgs.
  std::string args_name() const { return original.name + "__gpuslice_args"; }
};

/// One line why the kernel cannot be persistent, or nothing.
using Refused = std::optional<std::string>;

// Names in rewritten functions. The facts refuse functions that use names with "gpuslice" themselves.
inline constexpr char kTaskEnd[] = "$gpuslice_task_end";
// where block-tasks go on to the entry's own body, if there are two
inline constexpr char kCrossing[] = "$gpuslice_crossing";
inline constexpr char kPlainTaskEnd[] = "$gpuslice_plain_task_end";  // of plain_body
inline constexpr char kCtaidRegister[] = "%gpuslice_ctaid_";         // + x, y, z
inline constexpr char kNctaidRegister[] = "%gpuslice_nctaid_";       // + x, y, z
inline constexpr char kSomeoneRegister[] = "%gpuslice_someone";      // predicate: some thread returns early
inline constexpr char kMeetFunction[] = "gpuslice_meet";             // join_finished_threads

}  // namespace gpuctl::ptx::pass
