// Builds the worker around the body. The worker is text, because text is easier to read, and to check against
// persistent_abi.h, than a tree.
//
//   prologue     the leader announces its worker
//   next         the loop begins; only the leader goes on from here to publish
//   quick claim  claims a chunk, if no further decision is needed
//   claim        polls, obeys the grant, claims a chunk
//   part         cuts from the chunk what can be published at once
//   publish      writes the next run of block-tasks to shared memory
//   wait         one barrier of all threads; each thread then reads the run and takes its block-tasks, or leaves
//   task         block index from the number of the block-task; the program's body; task_end; back to task, or to next
//
// The loop must have one entry. ptxas reconverges the lanes of a warp behind a branch or a loop of the body only if all
// loops around it have a single entry. Otherwise it lets the lanes arrive one after the other at barriers, yet still
// keeps values in registers that the whole warp shares, and results become wrong. ptxas does the same (seen with 13.0)
// if code that only the leader executes contains a loop that waits, a nanosleep, or a call. So a resting holder
// publishes an empty run and comes back to `next` with its whole block, without sleeping.
//
// A run of block-tasks is published as one word (index_mask()). There are two places for it, used in alternate turns:
// the leader writes one place before a barrier, while slow threads may still be about to read its previous word from
// the other place. That other place is written again only after the next such barrier, which those threads reach after
// they have read.
//
// The leader is thread 0 at first. Where the warps of a block do not meet within each block-task, they may finish a
// chunk at different times. There, thread 0 leads for the first chunk. From then on, the first lane of the first warp
// that finishes leads, and its round trips to memory overlap with the work of the other warps. The warps count
// themselves in shared memory, in two places by turns; the leader zeroes the place for the next turn before the
// barrier. What a leader must know is in shared memory. (Letting the first lane of every warp go on towards the claim
// until it knew whether it leads gained nothing, and random kernels made illegal accesses on the GPU, for the reason
// given above for the single entry. They also did when thread 0 published the next chunk while its block was still at
// work on this one.)
//
// Each thread goes through the published block-tasks by itself. In kernels whose threads share memory or barriers, the
// threads meet between two block-tasks, or inside the next one where that is late enough (meet_late), unless they meet
// at its beginning anyway. With two bodies (split_early_return) there are two such loops, and the only way back from
// the second to the first is through `next`. The run's word (%gpuslice_at) lives across the body, and so does the turn,
// in a predicate (%gpuslice_odd). All else that is needed between two block-tasks is in parameters, because each
// instruction there counts in a kernel with short block-tasks. So does each register that lives across the body: with
// one more, ptxas gave the inner loop of binomialOptions more waiting and register bank conflicts (1.25 of the time).
//
// A worker of a guarded kernel goes through the loop only until it has one block-task (or while it rests). Its threads
// end with the body, each by itself, and the last of them leaves for all. What is left when SMs were taken away is
// taken by other workers: the agent's.
//
// Visibility. All writes of all threads in all their block-tasks happen before the last barrier. The writes of a worker
// of the in-stream grid are visible to what follows in the stream, because that comes after this grid. An agent's grid
// has no such order. So its leaders fence after the barrier, and the fence is cumulative over their block: the writes
// are visible, system-wide, to a thread that sees the addition to `left` and fences. The holder waits for all of those
// additions, and fences before its grid ends.
#include "ptx/worker/wrap_in_claim_loop.h"

#include <algorithm>
#include <iterator>

#include "ptx/pass/join_finished_threads.h"
#include "ptx/pass/words_behind.h"
#include "ptx/syntax/parser.h"
#include "ptx/worker/claim_text.h"
#include "ptx/worker/leave_text.h"
#include "ptx/worker/names.h"
#include "ptx/worker/publish_text.h"
#include "ptx/worker/quick_text.h"
#include "ptx/worker/start_text.h"
#include "ptx/worker/task_text.h"

namespace gpuctl::ptx::pass {
namespace {

void append(std::vector<Statement>& to, std::vector<Statement> from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

bool is_own_shared_variable(const Statement& statement) {
  const auto* variable = std::get_if<Variable>(&statement);
  return variable != nullptr && variable->space.starts_with("shared") && variable->names[0].name != "gpuslice_shared";
}

/// The pieces of text that depend on which components of the block index the kernel reads.
struct Index {
  std::string_view quick;  ///< follows a quick claim
  std::string_view tasks;  ///< turns the claimed numbers into block-tasks
  std::string_view part;
  std::string_view count;
  bool in_parts;
  std::string text;
  std::string_view advance;
};

Index index_for(std::uint8_t reads) {
  if ((reads & kReadsCtaidZ) != 0)
    return {"@IN_ORDER\n", kTasksInOrder, kWholeChunk, kCountInOrder, false, index_in_space(), kAdvanceInOrder};
  if ((reads & kReadsCtaidY) != 0)
    return {kQuickPlane, kTasksInOrder, kPartOfPlane, kCountInOrder, true, index_in_plane(), kAdvanceInOrder};
  return {kQuickRow,   kTasksInRow, kPartOfRow,
          kCountInRow, true,        std::string((reads & kReadsCtaidX) != 0 ? kIndexInRow : ""),
          kAdvance};
}

}  // namespace

Refused wrap_in_claim_loop(Kernel& kernel) {
  const bool joins = kernel.report.needs_finished_barrier;
  const bool skips = skips_joining(kernel);
  const bool two_bodies = kernel.plain_body.has_value();
  const bool shares = kernel.report.uses_shared || kernel.report.uses_barrier;
  const std::uint8_t reads = kernel.closure.grid_reads;
  const WorkerNames names(kernel.args_name());
  const Index index = index_for(reads);
  const bool reads_size = (reads & (kReadsNctaidX | kReadsNctaidY | kReadsNctaidZ)) != 0;
  const std::string start_of_task = names.expand(index.text + std::string(reads_size ? kGridSize : ""));
  const std::string_view end_of_task = kernel.closure.uses_async_copy ? kFinishCopies : "";

  const bool meets = kernel.meets_at_branch || kernel.meets_inside;
  const std::string to_next = names.expand(meets ? std::string_view() : kFirstLeads) + std::string(kToNext);

  std::string text = ".version 6.3\n.target sm_70\n.address_size 64\n.entry worker()\n{";
  text += kDeclarations;
  text += kStart;
  text += names.expand(kPrologue);
  if (kernel.once()) text += kLookFirst;
  text += kNext;
  if (index.in_parts) text += kNextPart;
  if (!kernel.once()) {
    text += names.expand(kQuickClaim);
    text += names.expand(index.quick);
    text += names.expand(kQuickRun);
  }
  text += names.expand(kClaim);
  text += names.expand(index.tasks);
  text += names.expand(kClaimed);
  text += names.expand(index.part);
  if (index.in_parts) text += names.expand(kPart);
  text += names.expand(index.count);
  text += names.expand(kPublish);
  if (!meets && !kernel.once()) text += kCountAnew;
  text += kWait;
  text += kPlainBarrier;
  text += names.expand(kRead);
  if (two_bodies) {
    text += kTaskLabel;
    text += start_of_task;
    text += kPlainTaskEndLabel;
    text += end_of_task;
    text += names.expand(index.advance);
    text += meets ? kRunOn : kMeetAndRunOn;
    text += to_next;
    text += kCrossingLabel;
    if (kernel.meets_inside) text += kPlainBarrier;
  }
  text += two_bodies ? kOtherTaskLabel : kTaskLabel;
  text += start_of_task;
  if (skips) text += kNotPlain;
  text += kTaskEndLabel;
  if (kernel.once()) {
    if (kernel.closure.uses_bulk_copy) text += kFinishBulkCopies;
    text += names.expand(kEndOnce);
  } else {
    text += end_of_task;
    text += names.expand(index.advance);
    if (joins) {
      if (skips) text += kPlainOrJoin;
      text += names.expand(kJoiningBarrier);
      text += two_bodies ? kRunOnOther : kRunOn;
    } else {
      text += shares && !kernel.meets_inside ? kMeetAndRunOn : kRunOn;
    }
    text += to_next;
  }
  text += kNoTask;
  text += names.expand(kLeave);
  text += names.expand(kernel.once() ? kHoldUntilClaimed : kHold);
  text += names.expand(kAwait);
  text += names.expand(kComplete);
  text += "}\n";
  if (kernel.report.words_behind) text = put_words_behind(text);
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
  // The program's own variables come first: they keep their addresses, and so need no extra instruction.
  std::stable_partition(result.begin(), result.end(), is_own_shared_variable);
  kernel.entry.body = std::move(result);
  return {};
}

}  // namespace gpuctl::ptx::pass
