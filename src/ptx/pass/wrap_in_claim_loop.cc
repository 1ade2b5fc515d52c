// The worker around the body, as text: it is easier to read, and to check against persistent_abi.h, than a tree.
//
//   prologue     the leader announces its worker
//   next         the loop begins; the leader alone goes on from here to publish
//   claim        polls, obeys the grant, claims a chunk
//   publish      writes the number of the next block-task to shared memory
//   wait         all threads: one barrier; then everybody reads that number and takes the block-task, or leaves
//   task         block index from the number of the block-task; the program's body; task_end; back to next
//
// The loop must have one way in. ptxas brings the lanes of a warp together again behind a branch or a loop of the body only
// where all loops around it have a single entry; elsewhere it lets them arrive one after the other at barriers, and still
// keeps values in registers that the whole warp shares: results become wrong.
//
// The word that carries the number is one of two, in turn: the leader writes the next one before that one's barrier, while
// slow threads may still be about to read the previous one, from the other word. The word they read is written again
// only after the next barrier, to which they come after reading. The leader claims right after its own part of the body, so
// its round trips to memory overlap with the work of the other warps.
//
// Kernels whose threads share something, memory or barriers, meet at that barrier between all block-tasks, unless they meet
// at the beginning of each anyway (split_early_return); then only the turn (%gpuslice_odd) and who leads (%gpuslice_others)
// live across the body, in predicates. In the others the threads run freely through the block-tasks of a chunk and meet
// once per claim; then %gpuslice_at lives across the body, with the turn in bit 31 (block-task numbers stay below 2^31).
// Everything else is read again where it is needed, from parameters or shared memory: a register more can cost more than
// a load.
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

}  // namespace

Refused wrap_in_claim_loop(Kernel& kernel) {
  const bool joins = kernel.report.needs_finished_barrier;
  const bool skips = skips_joining(kernel);
  const bool two_bodies = kernel.plain_body.has_value();
  const bool shares = kernel.report.uses_shared || kernel.report.uses_barrier;
  const bool runs_on = !shares || (two_bodies && kernel.meets_at_branch);
  const std::uint8_t reads = kernel.closure.grid_reads;
  const WorkerNames names(kernel.args_name());
  const std::string_view finish_copies = kernel.closure.uses_async_copy ? kFinishCopies : "";

  std::string text = ".version 6.3\n.target sm_70\n.address_size 64\n.entry worker()\n{";
  text += kDeclarations;
  text += runs_on ? kStartAt : kStartOdd;
  if (skips || two_bodies) text += kPlain;
  if (two_bodies && runs_on) text += kNoMore;
  text += names.expand(kPrologue);
  text += kNext;
  if (!runs_on) text += kNextOdd;
  if (two_bodies && runs_on) text += kNextMore;
  text += names.expand(kClaim);
  text += runs_on ? kPublishAt : kPublishOdd;
  if (skips || two_bodies) text += kPlainOrJoin;
  text += joins ? kJoiningBarrier : kPlainBarrier;
  if (two_bodies && runs_on) text += kMoreOfChunk;
  text += names.expand(runs_on ? kReadAt : kReadOdd);
  if ((reads & (kReadsCtaidX | kReadsCtaidY | kReadsCtaidZ)) != 0) text += names.expand(kBlockIndex);
  if ((reads & (kReadsNctaidX | kReadsNctaidY | kReadsNctaidZ)) != 0) text += names.expand(kGridSize);
  if (skips) text += kNotPlain;
  if (two_bodies) {
    text += kPlainTaskEndLabel;
    text += finish_copies;
    text += kPlain;
    if (runs_on) {
      text += kNoMore;
      text += kAdvanceAt;
      text += kRunOn;
    } else {
      text += kToAdvance;
    }
  }
  text += kTaskEndLabel;
  text += finish_copies;
  if (two_bodies) text += kNotPlain;
  if (two_bodies && !runs_on) text += kAdvanceLabel;
  text += runs_on ? kAdvanceAt : kAdvanceOdd;
  if (runs_on) text += two_bodies ? kJoinThenRunOn : kRunOn;
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
