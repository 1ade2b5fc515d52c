// Builds the worker around the body. The worker is text (worker.ptx.in), because text is easier to read, and to check
// against persistent_abi.h, than a tree.
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
#include "ptx/worker/worker_text.h"

namespace gpuctl::ptx::pass {
namespace {

void append(std::vector<Statement>& to, std::vector<Statement> from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

bool is_own_shared_variable(const Statement& statement) {
  const auto* variable = std::get_if<Variable>(&statement);
  return variable != nullptr && variable->space.starts_with("shared") && variable->names[0].name != "gpuslice_shared";
}

WorkerShape shape_for(const Kernel& kernel) {
  const bool meets = kernel.meets_at_branch || kernel.meets_inside;
  const std::uint8_t reads = kernel.closure.grid_reads;
  const auto any_of = [reads](std::uint8_t bits) { return (reads & bits) != 0; };
  return {
      .two_bodies = kernel.plain_body.has_value(),
      .joins = kernel.report.needs_finished_barrier,
      .may_join_plainly = skips_joining(kernel),
      .meets_in_plain_body = meets,
      .meets_inside = kernel.meets_inside,
      .meets_between = (kernel.report.uses_shared || kernel.report.uses_barrier) && !kernel.meets_inside,
      .first_leads = !meets,
      .one_axis = !any_of(kReadsCtaidY | kReadsCtaidZ),
      .reads_x = any_of(kReadsCtaidX),
      .reads_y = any_of(kReadsCtaidY),
      .reads_z = any_of(kReadsCtaidZ),
      .reads_size = any_of(kReadsNctaidX | kReadsNctaidY | kReadsNctaidZ),
      .copies = kernel.closure.uses_async_copy,
  };
}

}  // namespace

Refused wrap_in_claim_loop(Kernel& kernel) {
  std::string text = worker_text(shape_for(kernel), kernel.args_name());
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
