// The worker around the body, as text: it is easier to read, and to check against persistent_abi.h, than a tree.
//
//   prologue     the leader announces its worker
//   next         the loop begins; the leader alone goes on from here to publish
//   claim        polls, obeys the grant, claims a chunk
//   part         cuts from its chunk what can be published at once
//   publish      writes to shared memory which block-tasks are next
//   wait         all threads: one barrier; then everybody reads that and takes the block-tasks, or leaves
//   task         block index from the number of the block-task; the program's body; task_end; back to task, or to next
//
// The loop must have one way in. ptxas brings the lanes of a warp together again behind a branch or a loop of the body only
// where all loops around it have a single entry; elsewhere it lets them arrive one after the other at barriers, and still
// keeps values in registers that the whole warp shares: results become wrong.
//
// What is published, the number of a block-task and the end of those that may be taken from there, stands in one of two
// places, in turn: the leader writes it before a barrier, while slow threads may still be about to read what it wrote last,
// from the other place. The place they read is written again only after the next such barrier, to which they come after
// reading. The leader claims right after its own part of the body, so its round trips to memory overlap with the work of the
// other warps.
//
// Everybody goes through the published block-tasks by himself. Kernels whose threads share something, memory or barriers,
// meet between two of them, unless they meet at the beginning of each anyway (split_early_return). %gpuslice_at,
// %gpuslice_end and, in predicates, the turn (%gpuslice_odd) and who leads (%gpuslice_others) live across the body. What
// else is needed between two block-tasks is in parameters: each instruction there counts, in a kernel of short ones.
//
// Visibility: all threads' writes of all their block-tasks happen before the last barrier. What a worker of the in-stream
// grid wrote is visible to what follows in the stream because that comes after this grid. An agent's grid is in no such
// order, so its leaders fence after the barrier, which is cumulative over their block: the writes are visible, system-wide,
// to whoever sees the addition to `left`. The holder waits for all of those, acquiring, before its grid ends.
#include "ptx/pass/wrap_in_claim_loop.h"

#include <iterator>

#include "ptx/parser.h"
#include "ptx/pass/join_finished_threads.h"
#include "ptx/pass/worker_claim_text.h"
#include "ptx/pass/worker_leave_text.h"
#include "ptx/pass/worker_names.h"
#include "ptx/pass/worker_task_text.h"

namespace gpuctl::ptx::pass {
namespace {

void append(std::vector<Statement>& to, std::vector<Statement> from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

/// The text with `where` in its labels.
std::string at_place(std::string_view text, std::string_view where) {
  constexpr std::string_view kWhere = "@WHERE";
  std::string result(text);
  for (std::size_t at = 0; (at = result.find(kWhere, at)) != result.npos;) result.replace(at, kWhere.size(), where);
  return result;
}

}  // namespace

Refused wrap_in_claim_loop(Kernel& kernel) {
  const bool joins = kernel.report.needs_finished_barrier;
  const bool skips = skips_joining(kernel);
  const bool two_bodies = kernel.plain_body.has_value();
  const bool shares = kernel.report.uses_shared || kernel.report.uses_barrier;
  const std::uint8_t reads = kernel.closure.grid_reads;
  const bool reads_z = (reads & kReadsCtaidZ) != 0;
  const bool reads_y = (reads & kReadsCtaidY) != 0;
  const WorkerNames names(kernel.args_name());
  const std::string_view finish_copies = kernel.closure.uses_async_copy ? kFinishCopies : "";
  const auto barrier = [&](std::string_view where) {
    std::string both(skips || two_bodies ? kPlainOrJoin : "");
    both += joins ? kJoiningBarrier : kPlainBarrier;
    return at_place(both, where);
  };
  const auto meet_and_go_on = [&](const std::string& barrier_text, std::string_view where) {
    return at_place(kMeetBefore, where) + barrier_text + at_place(kMeetBehind, where);
  };

  std::string text = ".version 6.3\n.target sm_70\n.address_size 64\n.entry worker()\n{";
  text += kDeclarations;
  text += kStart;
  if (skips || two_bodies) text += kPlain;
  text += names.expand(kPrologue);
  text += kNext;
  if (!reads_z) text += kNextPart;
  text += names.expand(kClaim);
  text += names.expand(reads_z ? kWholeChunk : reads_y ? kPartOfPlane : kPartOfRow);
  if (!reads_z) text += names.expand(kPart);
  text += kPublish;
  text += barrier("_first");
  text += names.expand(kRead);
  text += kTaskLabel;
  if (reads_y || reads_z) text += names.expand(kIndexInPlane);
  if (reads_z) text += names.expand(kIndexInSpace);
  if ((reads & kReadsCtaidX) != 0 && !reads_y && !reads_z) text += kIndexInRow;
  if ((reads & (kReadsNctaidX | kReadsNctaidY | kReadsNctaidZ)) != 0) text += names.expand(kGridSize);
  if (skips) text += kNotPlain;
  if (two_bodies) {
    text += kPlainTaskEndLabel;
    text += finish_copies;
    text += kPlain;
    text += kAdvance;
    text += kernel.meets_at_branch ? std::string(kRunOn) : meet_and_go_on(std::string(kPlainBarrier), "_plain");
    text += kToNext;
  }
  text += kTaskEndLabel;
  text += finish_copies;
  if (two_bodies) text += kNotPlain;
  text += kAdvance;
  text += shares ? meet_and_go_on(barrier("_again"), "") : std::string(kRunOn);
  text += kToNext;
  text += names.expand(kLeave);
  text += "}\n";
  Result<Module> worker = parse(text);
  if (!worker) return "the worker's own text does not parse: " + worker.error().message;

  std::vector<Statement> result;
  for (Statement& statement : *std::get<Function>(worker->items[0]).body) {
    const auto* label = std::get_if<Label>(&statement);
    if (label != nullptr && label->name == kPlainTaskEnd) append(result, std::move(*kernel.plain_body));
    if (label != nullptr && label->name == kTaskEnd) append(result, std::move(*kernel.entry.body));
    result.push_back(std::move(statement));
  }
  kernel.plain_body.reset();
  kernel.entry.body = std::move(result);
  return {};
}

}  // namespace gpuctl::ptx::pass
