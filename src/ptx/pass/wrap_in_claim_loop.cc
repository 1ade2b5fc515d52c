// The worker around the body, as text: it is easier to read, and to check against persistent_abi.h, than a tree.
//
//   prologue     the leader announces its worker
//   next         the loop begins; the leader alone goes on from here to publish
//   quick claim  claims a chunk, if nothing else is to be done
//   claim        polls, obeys the grant, claims a chunk
//   part         cuts from its chunk what can be published at once
//   publish      writes to shared memory which block-tasks are next
//   wait         all threads: one barrier; then everybody reads that and takes the block-tasks, or leaves
//   task         block index from the number of the block-task; the program's body; task_end; back to task, or to next
//
// The loop must have one way in. ptxas brings the lanes of a warp together again behind a branch or a loop of the body
// only where all loops around it have a single entry; elsewhere it lets them arrive one after the other at barriers,
// and still keeps values in registers that the whole warp shares: results become wrong. It does the same, seen with
// ptxas 13.0, where what only the leader executes contains a loop that waits, nanosleep, or a call. So a holder that
// rests publishes an empty run and comes back to `next` with its whole block, without sleeping.
//
// What is published, the word of a run of block-tasks (index_mask()), stands in one of two places, in turn: the leader
// writes it before a barrier, while slow threads may still be about to read what it wrote last, from the other place.
// The place they read is written again only after the next such barrier, to which they come after reading.
//
// The leader is thread 0. Where the warps of a block do not meet within each block-task, they may be through with a
// chunk at different times: there it is thread 0 for the first chunk, then the first lane of whichever warp is through
// first, and its round trips to memory overlap with the work of the others. They count themselves in shared memory, in
// two places by turns; the leader zeroes the place for the next turn before the barrier. What a leader must know stands
// in shared memory. (To let each warp's first lane go on towards the claim until it knows gained nothing, and random
// kernels made illegal accesses on the GPU: see what was said of the loop's entry. They did too when thread 0 published
// the next chunk while its block was at work on this one.)
//
// Everybody goes through the published block-tasks by himself. Kernels whose threads share something, memory or
// barriers, meet between two of them, or in the next one where that is late enough (meet_late), unless they meet at its
// beginning anyway. With two bodies (split_early_return) there are two such loops, and no way back from the second to
// the first but through `next`. The run's word (%gpuslice_at) lives across the body and, in a predicate, the turn
// (%gpuslice_odd). What else is needed between two block-tasks is in parameters: each instruction there counts, in a
// kernel of short ones. So does each register that lives across the body: with one more, ptxas made the inner loop of
// binomialOptions wait and collide (1.25 of the time).
//
// A guarded kernel's worker goes through the loop only until it has one block-task (or rests); its threads end with the
// body, each for itself, and the last of them leaves for all. What is left when SMs were taken away, other workers
// take: the agent's.
//
// Visibility: all threads' writes of all their block-tasks happen before the last barrier. What a worker of the
// in-stream grid wrote is visible to what follows in the stream because that comes after this grid. An agent's grid is
// in no such order, so its leaders fence after the barrier, which is cumulative over their block: the writes are
// visible, system-wide, to whoever sees the addition to `left` and fences. The holder waits for all of those, and
// fences, before its grid ends.
#include "ptx/pass/wrap_in_claim_loop.h"

#include <algorithm>
#include <iterator>

#include "ptx/parser.h"
#include "ptx/pass/join_finished_threads.h"
#include "ptx/pass/words_behind.h"
#include "ptx/pass/worker_claim_text.h"
#include "ptx/pass/worker_leave_text.h"
#include "ptx/pass/worker_names.h"
#include "ptx/pass/worker_publish_text.h"
#include "ptx/pass/worker_quick_text.h"
#include "ptx/pass/worker_start_text.h"
#include "ptx/pass/worker_task_text.h"

namespace gpuctl::ptx::pass {
namespace {

void append(std::vector<Statement>& to, std::vector<Statement> from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

bool is_own_shared_variable(const Statement& statement) {
  const auto* variable = std::get_if<Variable>(&statement);
  return variable != nullptr && variable->space.starts_with("shared") && variable->names[0].name != "gpuslice_shared";
}

/// Where the block index comes from, and what a part of a chunk must not go beyond.
struct Index {
  std::string_view quick;  ///< what is to be done with a quick claim
  std::string_view tasks;  ///< of the chunk
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
  // The program's own first: they keep their addresses, which then need no instruction more.
  std::stable_partition(result.begin(), result.end(), is_own_shared_variable);
  kernel.entry.body = std::move(result);
  return {};
}

}  // namespace gpuctl::ptx::pass
