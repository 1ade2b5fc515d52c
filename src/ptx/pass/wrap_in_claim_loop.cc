// The worker around the body, as text: it is easier to read, and to check against persistent_abi.h, than a tree.
//
//   prologue     the leader counts an agent's worker, or announces the in-stream grid
//   claim        leader only: polls, obeys the limit, claims a chunk, writes its first block-task to shared memory
//   wait         all threads: one barrier; then everybody reads the claim and takes it, or leaves
//   task         block index from the number of the block-task; the program's body; task_end
//
// One barrier per claim. The word that carries the claim is one of two, by parity: the leader writes the next claim before
// that claim's barrier, while slow threads may still be about to read the previous one, from the other word. The word they
// read is written again only after the next barrier, to which they come after reading. The leader claims right
// after its own part of the body, so its round trips to memory overlap with the work of the other warps.
//
// Between the block-tasks of a chunk threads need not meet, unless they share something: memory or barriers.
//
// Visibility: all threads' writes of all their block-tasks happen before the last barrier. What a worker of the in-stream grid
// wrote is visible to what follows in the stream because that comes after this grid. An agent's grid is in no such order, so
// its leaders fence after the barrier, which is cumulative over their block: the writes are visible, system-wide, to whoever
// sees the addition to `left`. The holder waits for all of those, acquiring, before its grid ends.
//
// Registers: only %gpuslice_at and %gpuslice_end live across the body, both with the parity in bit 31 (block-task
// numbers stay below 2^31). Everything else is read again where it is needed, from parameters or shared memory.
//
// Shared words: +0 and +4 the claims by parity; +8 (64 bits) the time a poller's chunk began, or why the worker leaves:
// 1 for the limit, else anything else.
#include "ptx/pass/wrap_in_claim_loop.h"

#include <cstddef>
#include <iterator>

#include "ptx/parser.h"
#include "ptx/pass/join_finished_threads.h"
#include "ptx/persistent_abi.h"

namespace gpuctl::ptx::pass {
namespace {

constexpr std::string_view kDeclarations = R"(
  .reg .pred %gpuslice_p, %gpuslice_q, %gpuslice_more, %gpuslice_plain, %gpuslice_someone;
  .reg .b32 %gpuslice_at, %gpuslice_end;
  .reg .b32 %gpuslice_ctaid_x, %gpuslice_ctaid_y, %gpuslice_ctaid_z;
  .reg .b32 %gpuslice_nctaid_x, %gpuslice_nctaid_y, %gpuslice_nctaid_z;
  .reg .b32 %gpuslice_r<12>;
  .reg .b64 %gpuslice_d<5>;
  .shared .align 8 .b8 gpuslice_shared[16];
)";

/// Sets %gpuslice_p in every thread but the leader.
constexpr std::string_view kNotLeader = R"(
  mov.u32 %gpuslice_r0, %tid.x;
  mov.u32 %gpuslice_r1, %tid.y;
  mov.u32 %gpuslice_r2, %tid.z;
  or.b32 %gpuslice_r0, %gpuslice_r0, %gpuslice_r1;
  or.b32 %gpuslice_r0, %gpuslice_r0, %gpuslice_r2;
  setp.ne.u32 %gpuslice_p, %gpuslice_r0, 0;
)";

constexpr std::string_view kPrologue = R"(
  mov.u32 %gpuslice_at, 0x80000000;
  mov.u32 %gpuslice_end, 0x80000000;
  @NOT_LEADER
  @%gpuslice_p bra $gpuslice_wait;
  mov.u64 %gpuslice_d0, 0;
  st.shared.u64 [gpuslice_shared+8], %gpuslice_d0;
  ld.param.u32 %gpuslice_r0, [@FLAGS];
  and.b32 %gpuslice_r0, %gpuslice_r0, @AGENT_GRID;
  setp.eq.u32 %gpuslice_p, %gpuslice_r0, 0;
  @%gpuslice_p bra $gpuslice_in_stream;
  ld.param.u64 %gpuslice_d0, [@SLOT];
  mov.u64 %gpuslice_d1, 0x100000000;
  red.global.add.u64 [%gpuslice_d0+@LEAVING], %gpuslice_d1;
  bra $gpuslice_claim;
$gpuslice_in_stream:
  mov.u32 %gpuslice_r0, %ctaid.x;
  setp.ne.u32 %gpuslice_p, %gpuslice_r0, 0;
  @%gpuslice_p bra $gpuslice_claim;
  ld.param.u64 %gpuslice_d0, [@HOST];
  mov.u64 %gpuslice_d1, %globaltimer;
  st.volatile.global.u64 [%gpuslice_d0+@START_NS], %gpuslice_d1;
  mov.u32 %gpuslice_r0, 1;
  st.volatile.global.u32 [%gpuslice_d0+@STARTED], %gpuslice_r0;
)";

// r1 ordinal, r2 pollers, r3 total, r6 next, r7 limit then L, r8 leaving, r9 extra; d0 slot.
constexpr std::string_view kClaim = R"(
$gpuslice_claim:
  ld.param.u64 %gpuslice_d0, [@SLOT];
  mov.u32 %gpuslice_r1, %ctaid.x;
  ld.param.u32 %gpuslice_r2, [@POLLERS];
  ld.param.u32 %gpuslice_r3, [@TOTAL];
  setp.lt.u32 %gpuslice_p, %gpuslice_r1, %gpuslice_r2;
  @%gpuslice_p bra $gpuslice_poll;
  ld.volatile.global.v4.u32 {%gpuslice_r6, %gpuslice_r7, %gpuslice_r8, %gpuslice_r9}, [%gpuslice_d0];
$gpuslice_decide:
  setp.ge.u32 %gpuslice_p, %gpuslice_r6, %gpuslice_r3;
  @%gpuslice_p bra $gpuslice_nothing_left;
  setp.eq.u32 %gpuslice_p, %gpuslice_r7, 0;
  @%gpuslice_p bra $gpuslice_take;
  sub.u32 %gpuslice_r7, %gpuslice_r7, 1;
  setp.eq.u32 %gpuslice_p, %gpuslice_r7, 0;
  @%gpuslice_p bra $gpuslice_all_leave;
  ld.param.u32 %gpuslice_r4, [@WORKERS];
  add.u32 %gpuslice_r5, %gpuslice_r4, %gpuslice_r9;
  sub.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r8;
  setp.le.u32 %gpuslice_p, %gpuslice_r5, %gpuslice_r7;
  @%gpuslice_p bra $gpuslice_take;
  setp.ne.u32 %gpuslice_q, %gpuslice_r2, 0;
  setp.eq.and.u32 %gpuslice_p, %gpuslice_r1, 0, %gpuslice_q;
  @%gpuslice_p bra $gpuslice_take;
  mov.u64 %gpuslice_d1, 1;
  atom.global.add.u64 %gpuslice_d1, [%gpuslice_d0+@LEAVING], %gpuslice_d1;
  mov.b64 {%gpuslice_r8, %gpuslice_r9}, %gpuslice_d1;
  add.u32 %gpuslice_r5, %gpuslice_r4, %gpuslice_r9;
  sub.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r8;
  setp.gt.u32 %gpuslice_p, %gpuslice_r5, %gpuslice_r7;
  @%gpuslice_p bra $gpuslice_evicted;
  mov.u32 %gpuslice_r4, 0xffffffff;
  red.global.add.u32 [%gpuslice_d0+@LEAVING], %gpuslice_r4;
$gpuslice_take:
  ld.param.u32 %gpuslice_r4, [@CHUNK];
  atom.global.add.u32 %gpuslice_r4, [%gpuslice_d0+@NEXT], %gpuslice_r4;
  min.u32 %gpuslice_r4, %gpuslice_r4, 0x7fffffff;
  setp.ge.u32 %gpuslice_p, %gpuslice_r1, %gpuslice_r2;
  @%gpuslice_p bra $gpuslice_publish;
  mov.u64 %gpuslice_d1, %globaltimer;
  st.shared.u64 [gpuslice_shared+8], %gpuslice_d1;
  bra $gpuslice_publish;
$gpuslice_poll:
  ld.param.u64 %gpuslice_d1, [@GRANT];
  ld.param.u64 %gpuslice_d2, [@STREAM_LIMIT];
  ld.volatile.global.u32 %gpuslice_r4, [%gpuslice_d1];
  ld.volatile.global.u32 %gpuslice_r5, [%gpuslice_d2];
  ld.volatile.global.v4.u32 {%gpuslice_r6, %gpuslice_r7, %gpuslice_r8, %gpuslice_r9}, [%gpuslice_d0];
  ld.volatile.global.u32 %gpuslice_r10, [%gpuslice_d0+@LEFT];
  mov.u64 %gpuslice_d3, %globaltimer;
  min.u32 %gpuslice_r4, %gpuslice_r4, %gpuslice_r5;
  min.u32 %gpuslice_r4, %gpuslice_r4, @UNLIMITED;
  ld.param.u32 %gpuslice_r5, [@PER_SM];
  mad.lo.u32 %gpuslice_r7, %gpuslice_r4, %gpuslice_r5, 1;
  st.volatile.global.u32 [%gpuslice_d0+@LIMIT], %gpuslice_r7;
  ld.param.u64 %gpuslice_d2, [@HOST];
  min.u32 %gpuslice_r4, %gpuslice_r6, %gpuslice_r3;
  st.volatile.global.v2.u32 [%gpuslice_d2+@HOST_LEFT], {%gpuslice_r10, %gpuslice_r4};
  ld.shared.u64 %gpuslice_d4, [gpuslice_shared+8];
  setp.eq.u64 %gpuslice_p, %gpuslice_d4, 0;
  @%gpuslice_p bra $gpuslice_decide;
  sub.u64 %gpuslice_d3, %gpuslice_d3, %gpuslice_d4;
  min.u64 %gpuslice_d3, %gpuslice_d3, 0xffffffff;
  cvt.u32.u64 %gpuslice_r4, %gpuslice_d3;
  shr.u32 %gpuslice_r5, %gpuslice_at, 31;
  shl.b32 %gpuslice_r5, %gpuslice_r5, 2;
  mov.u32 %gpuslice_r10, gpuslice_shared;
  add.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r10;
  ld.shared.u32 %gpuslice_r5, [%gpuslice_r5];
  and.b32 %gpuslice_r10, %gpuslice_at, 0x7fffffff;
  sub.u32 %gpuslice_r5, %gpuslice_r10, %gpuslice_r5;
  div.u32 %gpuslice_r4, %gpuslice_r4, %gpuslice_r5;
  max.u32 %gpuslice_r4, %gpuslice_r4, 1;
  st.volatile.global.u32 [%gpuslice_d2+@TASK_NS], %gpuslice_r4;
  mov.u64 %gpuslice_d3, 0;
  st.shared.u64 [gpuslice_shared+8], %gpuslice_d3;
  bra $gpuslice_decide;
$gpuslice_all_leave:
  setp.ne.u32 %gpuslice_q, %gpuslice_r2, 0;
  setp.eq.and.u32 %gpuslice_p, %gpuslice_r1, 0, %gpuslice_q;
  @%gpuslice_p bra $gpuslice_rest;
  mov.u32 %gpuslice_r4, 1;
  red.global.add.u32 [%gpuslice_d0+@LEAVING], %gpuslice_r4;
$gpuslice_evicted:
  mov.u64 %gpuslice_d1, 1;
  bra $gpuslice_give_up;
$gpuslice_rest:
  nanosleep.u32 2000;
  bra $gpuslice_claim;
$gpuslice_nothing_left:
  mov.u64 %gpuslice_d1, 0;
$gpuslice_give_up:
  st.shared.u64 [gpuslice_shared+8], %gpuslice_d1;
  mov.u32 %gpuslice_r4, 0x7fffffff;
$gpuslice_publish:
  shr.u32 %gpuslice_r5, %gpuslice_at, 31;
  xor.b32 %gpuslice_r5, %gpuslice_r5, 1;
  shl.b32 %gpuslice_r5, %gpuslice_r5, 2;
  mov.u32 %gpuslice_r10, gpuslice_shared;
  add.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r10;
  st.shared.u32 [%gpuslice_r5], %gpuslice_r4;
$gpuslice_wait:
)";

constexpr std::string_view kPlainBarrier = R"(
  bar.sync 0;
)";

/// All threads of the block are here, finished, when the count says so; until then it is a barrier of the live ones.
constexpr std::string_view kJoiningBarrier = R"(
$gpuslice_join:
  {
    .param .b32 gpuslice_finished;
    .param .b32 gpuslice_count;
    mov.b32 %gpuslice_r0, 1;
    st.param.b32 [gpuslice_finished], %gpuslice_r0;
    call (gpuslice_count), gpuslice_meet, (gpuslice_finished);
    ld.param.b32 %gpuslice_r1, [gpuslice_count];
  }
  mov.u32 %gpuslice_r0, %ntid.x;
  mov.u32 %gpuslice_r2, %ntid.y;
  mul.lo.u32 %gpuslice_r0, %gpuslice_r0, %gpuslice_r2;
  mov.u32 %gpuslice_r2, %ntid.z;
  mul.lo.u32 %gpuslice_r0, %gpuslice_r0, %gpuslice_r2;
  setp.ne.u32 %gpuslice_p, %gpuslice_r1, %gpuslice_r0;
  @%gpuslice_p bra.uni $gpuslice_join;
$gpuslice_joined:
  setp.lt.u32 %gpuslice_more, %gpuslice_at, %gpuslice_end;
  @%gpuslice_more bra.uni $gpuslice_task;
)";

/// Nobody returned early from the block-task that ends here, if %gpuslice_plain says so.
constexpr std::string_view kPlainOrJoin = R"(
  @!%gpuslice_plain bra.uni $gpuslice_join;
  bar.sync 0;
  bra.uni $gpuslice_joined;
)";

constexpr std::string_view kReadClaim = R"(
  not.b32 %gpuslice_r1, %gpuslice_at;
  and.b32 %gpuslice_r1, %gpuslice_r1, 0x80000000;
  shr.u32 %gpuslice_r2, %gpuslice_r1, 29;
  mov.u32 %gpuslice_r3, gpuslice_shared;
  add.u32 %gpuslice_r2, %gpuslice_r2, %gpuslice_r3;
  ld.shared.u32 %gpuslice_r0, [%gpuslice_r2];
  ld.param.u32 %gpuslice_r3, [@TOTAL];
  setp.ge.u32 %gpuslice_p, %gpuslice_r0, %gpuslice_r3;
  @%gpuslice_p bra.uni $gpuslice_leave;
  ld.param.u32 %gpuslice_r2, [@CHUNK];
  sub.u32 %gpuslice_r3, %gpuslice_r3, %gpuslice_r0;
  min.u32 %gpuslice_r2, %gpuslice_r2, %gpuslice_r3;
  add.u32 %gpuslice_r2, %gpuslice_r2, %gpuslice_r0;
  or.b32 %gpuslice_at, %gpuslice_r0, %gpuslice_r1;
  or.b32 %gpuslice_end, %gpuslice_r2, %gpuslice_r1;
$gpuslice_task:
)";

/// In a grid of one dimension, the usual case, the number of the block-task is its index.
constexpr std::string_view kBlockIndex = R"(
  and.b32 %gpuslice_ctaid_x, %gpuslice_at, 0x7fffffff;
  mov.u32 %gpuslice_ctaid_y, 0;
  mov.u32 %gpuslice_ctaid_z, 0;
  ld.param.u32 %gpuslice_r1, [@GRID_Y];
  ld.param.u32 %gpuslice_r2, [@GRID_Z];
  or.b32 %gpuslice_r2, %gpuslice_r1, %gpuslice_r2;
  setp.eq.u32 %gpuslice_p, %gpuslice_r2, 1;
  @%gpuslice_p bra.uni $gpuslice_body;
  ld.param.u32 %gpuslice_r2, [@GRID_X];
  div.u32 %gpuslice_r3, %gpuslice_ctaid_x, %gpuslice_r2;
  mul.lo.u32 %gpuslice_r2, %gpuslice_r3, %gpuslice_r2;
  sub.u32 %gpuslice_ctaid_x, %gpuslice_ctaid_x, %gpuslice_r2;
  div.u32 %gpuslice_ctaid_z, %gpuslice_r3, %gpuslice_r1;
  mul.lo.u32 %gpuslice_r2, %gpuslice_ctaid_z, %gpuslice_r1;
  sub.u32 %gpuslice_ctaid_y, %gpuslice_r3, %gpuslice_r2;
$gpuslice_body:
)";

constexpr std::string_view kGridSize = R"(
  ld.param.u32 %gpuslice_nctaid_x, [@GRID_X];
  ld.param.u32 %gpuslice_nctaid_y, [@GRID_Y];
  ld.param.u32 %gpuslice_nctaid_z, [@GRID_Z];
)";

constexpr std::string_view kNotPlain = R"(
  setp.ne.u32 %gpuslice_plain, 0, 0;
)";

constexpr std::string_view kPlainTaskEndLabel = R"(
$gpuslice_plain_task_end:
)";

constexpr std::string_view kPlainTaskEndText = R"(
  setp.eq.u32 %gpuslice_plain, 0, 0;
  bra.uni $gpuslice_advance;
)";

constexpr std::string_view kAdvanceLabel = R"(
$gpuslice_advance:
)";

constexpr std::string_view kTaskEndLabel = R"(
$gpuslice_task_end:
)";

/// Copies into shared memory that the block-task left in flight must not land in the next one.
constexpr std::string_view kFinishCopies = R"(
  cp.async.wait_all;
)";

/// @NEXT_TASK: where a thread goes that has more block-tasks in its chunk.
constexpr std::string_view kAdvance = R"(
  add.u32 %gpuslice_at, %gpuslice_at, 1;
  setp.lt.u32 %gpuslice_more, %gpuslice_at, %gpuslice_end;
  @%gpuslice_more bra.uni @NEXT_TASK;
  @NOT_LEADER
  @%gpuslice_p bra $gpuslice_wait;
  bra $gpuslice_claim;
)";

constexpr std::string_view kMeetBetweenTasks = R"(
$gpuslice_meet:
  bar.sync 0;
  bra.uni $gpuslice_task;
)";

// r3 total, r4 left, r5 workers + extra, r6 next, r7 limit, r9 extra; d0 slot, d1 host.
constexpr std::string_view kLeave = R"(
$gpuslice_leave:
  @NOT_LEADER
  @%gpuslice_p bra $gpuslice_return;
  ld.param.u64 %gpuslice_d0, [@SLOT];
  ld.param.u64 %gpuslice_d1, [@HOST];
  mov.u32 %gpuslice_r1, %ctaid.x;
  ld.param.u32 %gpuslice_r2, [@POLLERS];
  ld.param.u32 %gpuslice_r3, [@FLAGS];
  and.b32 %gpuslice_r3, %gpuslice_r3, @AGENT_GRID;
  setp.ne.u32 %gpuslice_q, %gpuslice_r3, 0;
  setp.lt.or.u32 %gpuslice_p, %gpuslice_r1, %gpuslice_r2, %gpuslice_q;
  @!%gpuslice_p bra $gpuslice_count_out;
  fence.acq_rel.sys;
  setp.eq.u32 %gpuslice_p, %gpuslice_r1, 0;
  setp.ne.and.u32 %gpuslice_p, %gpuslice_r2, 0, %gpuslice_p;
  @!%gpuslice_p bra $gpuslice_count_out;
$gpuslice_await:
  ld.acquire.gpu.global.u32 %gpuslice_r4, [%gpuslice_d0+@LEFT];
  ld.volatile.global.u32 %gpuslice_r9, [%gpuslice_d0+@EXTRA];
  ld.param.u32 %gpuslice_r5, [@WORKERS];
  add.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r9;
  sub.u32 %gpuslice_r5, %gpuslice_r5, 1;
  setp.eq.u32 %gpuslice_p, %gpuslice_r4, %gpuslice_r5;
  @%gpuslice_p bra $gpuslice_count_out;
  nanosleep.u32 100;
  bra $gpuslice_await;
$gpuslice_count_out:
  mov.u32 %gpuslice_r4, 1;
  atom.acquire.gpu.global.add.u32 %gpuslice_r4, [%gpuslice_d0+@LEFT], %gpuslice_r4;
  add.u32 %gpuslice_r4, %gpuslice_r4, 1;
  ld.volatile.global.v4.u32 {%gpuslice_r6, %gpuslice_r7, %gpuslice_r8, %gpuslice_r9}, [%gpuslice_d0];
  ld.param.u32 %gpuslice_r5, [@WORKERS];
  add.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r9;
  setp.eq.u32 %gpuslice_p, %gpuslice_r4, %gpuslice_r5;
  @%gpuslice_p bra $gpuslice_last;
  setp.eq.u32 %gpuslice_p, %gpuslice_r7, 0;
  @%gpuslice_p bra $gpuslice_return;
  sub.u32 %gpuslice_r7, %gpuslice_r7, 1;
  max.u32 %gpuslice_r7, %gpuslice_r7, 1;
  sub.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r7;
  setp.ne.u32 %gpuslice_p, %gpuslice_r4, %gpuslice_r5;
  @%gpuslice_p bra $gpuslice_return;
$gpuslice_post_left:
  ld.shared.u64 %gpuslice_d2, [gpuslice_shared+8];
  setp.ne.u64 %gpuslice_p, %gpuslice_d2, 1;
  @%gpuslice_p bra $gpuslice_post_count;
  mov.u64 %gpuslice_d2, %globaltimer;
  st.volatile.global.u64 [%gpuslice_d1+@LEFT_NS], %gpuslice_d2;
$gpuslice_post_count:
  st.volatile.global.u32 [%gpuslice_d1+@HOST_LEFT], %gpuslice_r4;
  bra $gpuslice_return;
$gpuslice_last:
  ld.param.u32 %gpuslice_r3, [@TOTAL];
  setp.lt.u32 %gpuslice_p, %gpuslice_r6, %gpuslice_r3;
  @%gpuslice_p bra $gpuslice_post_left;
  setp.eq.u32 %gpuslice_p, %gpuslice_r9, 0;
  @%gpuslice_p bra $gpuslice_open;
  fence.acq_rel.sys;
$gpuslice_open:
  mov.u64 %gpuslice_d2, %globaltimer;
  st.volatile.global.u64 [%gpuslice_d1+@DONE_NS], %gpuslice_d2;
  ld.shared.u64 %gpuslice_d3, [gpuslice_shared+8];
  setp.eq.u64 %gpuslice_p, %gpuslice_d3, 1;
  @%gpuslice_p st.volatile.global.u64 [%gpuslice_d1+@LEFT_NS], %gpuslice_d2;
  mov.u32 %gpuslice_r0, 1;
  st.volatile.global.v4.u32 [%gpuslice_d1], {%gpuslice_r0, %gpuslice_r0, %gpuslice_r4, %gpuslice_r3};
$gpuslice_return:
  ret;
)";
// The store of four words above writes started, done, left and progress at once.
static_assert(offsetof(HostSlot, started) == 0 && offsetof(HostSlot, done) == 4 && offsetof(HostSlot, left) == 8 &&
              offsetof(HostSlot, progress) == 12);
// The loads of four words read next, limit, leaving and extra.
static_assert(offsetof(DeviceSlot, next) == 0 && offsetof(DeviceSlot, limit) == 4 && offsetof(DeviceSlot, leaving) == 8 &&
              offsetof(DeviceSlot, extra) == 12);

/// What the @WORDS of the text stand for.
class Names {
 public:
  Names(const std::string& args, std::string_view next_task) : args_(args), next_task_(next_task) {}

  std::string expand(std::string_view text) const {
    std::string out;
    while (!text.empty()) {
      const std::size_t at = text.find('@');
      out += text.substr(0, at);
      if (at == text.npos) break;
      text.remove_prefix(at);
      std::size_t length = 1;
      while (length < text.size() && ((text[length] >= 'A' && text[length] <= 'Z') || text[length] == '_')) ++length;
      out += length == 1 ? "@" : word(text.substr(1, length - 1));
      text.remove_prefix(length);
    }
    return out;
  }

 private:
  std::string arg(std::size_t offset) const { return args_ + "+" + std::to_string(offset); }

  std::string word(std::string_view name) const {
    struct Row {
      std::string_view name;
      std::size_t offset;
    };
    static constexpr Row kArgs[] = {
        {"SLOT", offsetof(LaunchArgs, slot)},       {"HOST", offsetof(LaunchArgs, host)},
        {"GRANT", offsetof(LaunchArgs, grant)},     {"STREAM_LIMIT", offsetof(LaunchArgs, stream_limit)},
        {"TOTAL", offsetof(LaunchArgs, total)},     {"GRID_X", offsetof(LaunchArgs, grid_x)},
        {"GRID_Y", offsetof(LaunchArgs, grid_y)},   {"GRID_Z", offsetof(LaunchArgs, grid_z)},
        {"CHUNK", offsetof(LaunchArgs, chunk)},     {"PER_SM", offsetof(LaunchArgs, per_sm)},
        {"WORKERS", offsetof(LaunchArgs, workers)}, {"POLLERS", offsetof(LaunchArgs, pollers)},
        {"FLAGS", offsetof(LaunchArgs, flags)},
    };
    static constexpr Row kNumbers[] = {
        {"NEXT", offsetof(DeviceSlot, next)},       {"LIMIT", offsetof(DeviceSlot, limit)},
        {"LEAVING", offsetof(DeviceSlot, leaving)}, {"LEFT", offsetof(DeviceSlot, left)},
        {"EXTRA", offsetof(DeviceSlot, extra)},     {"STARTED", offsetof(HostSlot, started)},
        {"HOST_LEFT", offsetof(HostSlot, left)},    {"START_NS", offsetof(HostSlot, start_ns)},
        {"DONE_NS", offsetof(HostSlot, done_ns)},   {"LEFT_NS", offsetof(HostSlot, left_ns)},
        {"TASK_NS", offsetof(HostSlot, task_ns)},   {"AGENT_GRID", kAgentGrid},
        {"UNLIMITED", 0x00ffffff},  // CapSM: "no limit", and what keeps the product with per_sm in 32 bits
    };
    if (name == "NOT_LEADER") return std::string(kNotLeader);
    if (name == "NEXT_TASK") return next_task_;
    for (const Row& row : kArgs) {
      if (row.name == name) return arg(row.offset);
    }
    for (const Row& row : kNumbers) {
      if (row.name == name) return std::to_string(row.offset);
    }
    return "@" + std::string(name);
  }

  std::string args_;
  std::string next_task_;
};

void append(std::vector<Statement>& to, std::vector<Statement> from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

}  // namespace

Refused wrap_in_claim_loop(Kernel& kernel) {
  const bool joins = kernel.report.needs_finished_barrier;
  const bool skips = skips_joining(kernel);
  const bool two_bodies = kernel.plain_body.has_value();
  const bool shares = kernel.report.uses_shared || kernel.report.uses_barrier;
  const std::uint8_t reads = kernel.closure.grid_reads;
  const Names names(kernel.args_name(), joins ? "$gpuslice_wait" : shares ? "$gpuslice_meet" : "$gpuslice_task");

  std::string text = ".version 6.0\n.target sm_70\n.address_size 64\n.entry worker()\n{";
  text += kDeclarations;
  if (skips || two_bodies) text += kNotPlain;
  text += names.expand(kPrologue);
  text += names.expand(kClaim);
  if (skips || two_bodies) text += kPlainOrJoin;
  text += joins ? kJoiningBarrier : kPlainBarrier;
  text += names.expand(kReadClaim);
  if ((reads & (kReadsCtaidX | kReadsCtaidY | kReadsCtaidZ)) != 0) text += names.expand(kBlockIndex);
  if ((reads & (kReadsNctaidX | kReadsNctaidY | kReadsNctaidZ)) != 0) text += names.expand(kGridSize);
  if (skips) text += kNotPlain;
  if (two_bodies) {
    text += kPlainTaskEndLabel;
    if (kernel.closure.uses_async_copy) text += kFinishCopies;
    text += kPlainTaskEndText;
  }
  text += kTaskEndLabel;
  if (kernel.closure.uses_async_copy) text += kFinishCopies;
  if (two_bodies) {
    text += kNotPlain;
    text += kAdvanceLabel;
  }
  text += names.expand(kAdvance);
  if (shares && !joins) text += kMeetBetweenTasks;
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
