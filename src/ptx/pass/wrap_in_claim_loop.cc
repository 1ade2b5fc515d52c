// The worker around the body, as text: it is easier to read, and to check against persistent_abi.h, than a tree.
//
//   prologue     the leader announces its worker
//   claim        leader only: polls, obeys the grant, claims a chunk
//   publish      leader only: writes the number of the next block-task to shared memory
//   wait         all threads: one barrier; then everybody reads that number and takes the block-task, or leaves
//   task         block index from the number of the block-task; the program's body; task_end
//
// The word that carries the number is one of two, in turn: the leader writes the next one before that one's barrier, while
// slow threads may still be about to read the previous one, from the other word. The word they read is written again
// only after the next barrier, to which they come after reading. The leader claims right after its own part of the body, so
// its round trips to memory overlap with the work of the other warps.
//
// Kernels whose threads share something, memory or barriers, meet at that barrier between all block-tasks; then only the
// turn (%gpuslice_odd) lives across the body. In the others the threads run freely through the block-tasks of a chunk and
// meet once per claim; then %gpuslice_at lives across the body, with the turn in bit 31 (block-task numbers stay below
// 2^31). Everything else is read again where it is needed, from parameters or shared memory: a register more can cost more
// than a load.
//
// Visibility: all threads' writes of all their block-tasks happen before the last barrier. What a worker of the in-stream
// grid wrote is visible to what follows in the stream because that comes after this grid. An agent's grid is in no such
// order, so its leaders fence after the barrier, which is cumulative over their block: the writes are visible, system-wide,
// to whoever sees the addition to `left`. The holder waits for all of those, acquiring, before its grid ends. Whoever has
// posted something to the host fences too, so that no post can come after the launch's slots are in other hands.
#include "ptx/pass/wrap_in_claim_loop.h"

#include <cstddef>
#include <iterator>

#include "ptx/parser.h"
#include "ptx/pass/join_finished_threads.h"
#include "ptx/persistent_abi.h"

namespace gpuctl::ptx::pass {
namespace {

// Shared words: +0 and +8 the next block-task, by turns, each with the end of its chunk after it; +16 (64 bits) what the leader
// is about (below); +24 the SM it started on; +28 whether it has posted to the host; +32 and +36 its chunk.
//
// What it is about: the time when a chunk to be measured began; 0 nothing; 1 it leaves because of its SM; 2 it rests.

constexpr std::string_view kDeclarations = R"(
  .reg .pred %gpuslice_p, %gpuslice_q, %gpuslice_odd, %gpuslice_plain, %gpuslice_someone;
  .reg .b32 %gpuslice_at;
  .reg .b32 %gpuslice_ctaid_x, %gpuslice_ctaid_y, %gpuslice_ctaid_z;
  .reg .b32 %gpuslice_nctaid_x, %gpuslice_nctaid_y, %gpuslice_nctaid_z;
  .reg .b32 %gpuslice_r<28>;
  .reg .b64 %gpuslice_d<5>;
  .shared .align 8 .b8 gpuslice_shared[40];
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

/// The address in `here` for SM r1, and what to add there: d1, r2. d0 slot.
constexpr std::string_view kHere = R"(
  and.b32 %gpuslice_r2, %gpuslice_r1, 252;
  cvt.u64.u32 %gpuslice_d1, %gpuslice_r2;
  add.u64 %gpuslice_d1, %gpuslice_d0, %gpuslice_d1;
  and.b32 %gpuslice_r2, %gpuslice_r1, 3;
  shl.b32 %gpuslice_r2, %gpuslice_r2, 3;
  mov.u32 %gpuslice_r0, 1;
  shl.b32 %gpuslice_r2, %gpuslice_r0, %gpuslice_r2;
)";

constexpr std::string_view kStartOdd = R"(
  setp.ne.u32 %gpuslice_odd, 0, 0;
)";

constexpr std::string_view kStartAt = R"(
  mov.u32 %gpuslice_at, 0x80000000;
)";

constexpr std::string_view kPrologue = R"(
  @NOT_LEADER
  @%gpuslice_p bra $gpuslice_wait;
  mov.u64 %gpuslice_d0, 0;
  st.shared.u64 [gpuslice_shared+16], %gpuslice_d0;
  ld.param.u64 %gpuslice_d0, [@SLOT];
  mov.u32 %gpuslice_r1, %smid;
  @HERE
  red.global.add.u32 [%gpuslice_d1+@HERE_BYTES], %gpuslice_r2;
  mov.u32 %gpuslice_r2, 0;
  st.shared.v2.u32 [gpuslice_shared+24], {%gpuslice_r1, %gpuslice_r2};
  mov.u32 %gpuslice_r2, 1;
  ld.param.u32 %gpuslice_r0, [@FLAGS];
  and.b32 %gpuslice_r0, %gpuslice_r0, @AGENT_GRID;
  setp.eq.u32 %gpuslice_p, %gpuslice_r0, 0;
  @%gpuslice_p bra $gpuslice_in_stream;
  red.global.add.u32 [%gpuslice_d0+@EXTRA], %gpuslice_r2;
  bra $gpuslice_claim;
$gpuslice_in_stream:
  mov.u32 %gpuslice_r0, %ctaid.x;
  setp.ne.u32 %gpuslice_p, %gpuslice_r0, 0;
  @%gpuslice_p bra $gpuslice_claim;
  st.shared.u32 [gpuslice_shared+28], %gpuslice_r2;
  ld.param.u64 %gpuslice_d0, [@HOST];
  mov.u64 %gpuslice_d1, %globaltimer;
  st.volatile.global.u64 [%gpuslice_d0+@START_NS], %gpuslice_d1;
  st.volatile.global.u32 [%gpuslice_d0+@STARTED], %gpuslice_r2;
)";

// r1 SM, r3 time, r4 forbidden SMs beside it, r6 next, r7 polling, r8 polled, r10 total; d0 slot, d3 slot + the SM's word,
// d4 what the leader is about; q: it has polled.
constexpr std::string_view kClaim = R"(
$gpuslice_claim:
  ld.param.u64 %gpuslice_d0, [@SLOT];
  mov.u32 %gpuslice_r1, %smid;
  shr.u32 %gpuslice_r2, %gpuslice_r1, 3;
  and.b32 %gpuslice_r2, %gpuslice_r2, 28;
  cvt.u64.u32 %gpuslice_d3, %gpuslice_r2;
  add.u64 %gpuslice_d3, %gpuslice_d0, %gpuslice_d3;
  ld.volatile.global.v4.u32 {%gpuslice_r6, %gpuslice_r7, %gpuslice_r8, %gpuslice_r9}, [%gpuslice_d0];
  ld.volatile.global.u32 %gpuslice_r4, [%gpuslice_d3+@FORBIDDEN];
  ld.param.u32 %gpuslice_r10, [@TOTAL];
  ld.shared.u64 %gpuslice_d4, [gpuslice_shared+16];
  setp.gt.u64 %gpuslice_p, %gpuslice_d4, 2;
  @%gpuslice_p bra $gpuslice_measure;
$gpuslice_measured:
  setp.ne.u32 %gpuslice_q, 0, 0;
  mov.u32 %gpuslice_r3, %globaltimer_lo;
  or.b32 %gpuslice_r3, %gpuslice_r3, 1;
  sub.u32 %gpuslice_r5, %gpuslice_r3, %gpuslice_r7;
  setp.eq.u32 %gpuslice_p, %gpuslice_r7, 0;
  setp.gt.or.u32 %gpuslice_p, %gpuslice_r5, @POLL_EVERY, %gpuslice_p;
  @%gpuslice_p bra $gpuslice_poll;
$gpuslice_decide:
  setp.ge.u32 %gpuslice_p, %gpuslice_r6, %gpuslice_r10;
  @%gpuslice_p bra $gpuslice_nothing_left;
  setp.ne.u32 %gpuslice_p, %gpuslice_r8, 0;
  @%gpuslice_p bra $gpuslice_obey;
  mov.u64 %gpuslice_d1, @ARGS;
  sub.u64 %gpuslice_d2, %gpuslice_d3, %gpuslice_d0;
  add.u64 %gpuslice_d1, %gpuslice_d1, %gpuslice_d2;
  ld.param.u32 %gpuslice_r4, [%gpuslice_d1+@ALLOWED];
  not.b32 %gpuslice_r4, %gpuslice_r4;
$gpuslice_obey:
  and.b32 %gpuslice_r5, %gpuslice_r1, 31;
  shr.u32 %gpuslice_r4, %gpuslice_r4, %gpuslice_r5;
  and.b32 %gpuslice_r4, %gpuslice_r4, 1;
  setp.ne.u32 %gpuslice_p, %gpuslice_r4, 0;
  @%gpuslice_p bra $gpuslice_forbidden;
  ld.param.u32 %gpuslice_r5, [@TAPER];
  sub.u32 %gpuslice_r3, %gpuslice_r10, %gpuslice_r6;
  shr.u32 %gpuslice_r5, %gpuslice_r3, %gpuslice_r5;
  ld.param.u32 %gpuslice_r3, [@CHUNK];
  min.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r3;
  max.u32 %gpuslice_r5, %gpuslice_r5, 1;
  atom.global.add.u32 %gpuslice_r4, [%gpuslice_d0+@NEXT], %gpuslice_r5;
  setp.eq.u64 %gpuslice_p, %gpuslice_d4, 2;
  @%gpuslice_p bra $gpuslice_wake;
$gpuslice_awake:
  mov.u64 %gpuslice_d1, 0;
  @%gpuslice_q mov.u64 %gpuslice_d1, %globaltimer;
  st.shared.u64 [gpuslice_shared+16], %gpuslice_d1;
  min.u32 %gpuslice_r4, %gpuslice_r4, 0x7fffffff;
  add.u32 %gpuslice_r5, %gpuslice_r4, %gpuslice_r5;
  min.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r10;
  st.shared.v2.u32 [gpuslice_shared+32], {%gpuslice_r4, %gpuslice_r5};
  bra $gpuslice_publish;
$gpuslice_measure:
  mov.u64 %gpuslice_d1, %globaltimer;
  sub.u64 %gpuslice_d1, %gpuslice_d1, %gpuslice_d4;
  min.u64 %gpuslice_d1, %gpuslice_d1, 0xffffffff;
  cvt.u32.u64 %gpuslice_r3, %gpuslice_d1;
  ld.shared.v2.u32 {%gpuslice_r2, %gpuslice_r5}, [gpuslice_shared+32];
  sub.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r2;
  div.u32 %gpuslice_r3, %gpuslice_r3, %gpuslice_r5;
  max.u32 %gpuslice_r3, %gpuslice_r3, 1;
  ld.param.u64 %gpuslice_d1, [@HOST];
  st.volatile.global.u32 [%gpuslice_d1+@TASK_NS], %gpuslice_r3;
  mov.u64 %gpuslice_d4, 0;
  st.shared.u64 [gpuslice_shared+16], %gpuslice_d4;
  bra $gpuslice_measured;
$gpuslice_poll:
  atom.global.cas.b32 %gpuslice_r5, [%gpuslice_d0+@POLLING], %gpuslice_r7, %gpuslice_r3;
  setp.ne.u32 %gpuslice_p, %gpuslice_r5, %gpuslice_r7;
  @%gpuslice_p bra $gpuslice_decide;
  ld.param.u64 %gpuslice_d1, [@GRANT];
  ld.param.u64 %gpuslice_d2, [@STREAM_SMS];
  ld.volatile.global.v4.u32 {%gpuslice_r12, %gpuslice_r13, %gpuslice_r14, %gpuslice_r15}, [%gpuslice_d1];
  ld.volatile.global.v4.u32 {%gpuslice_r16, %gpuslice_r17, %gpuslice_r18, %gpuslice_r19}, [%gpuslice_d1+16];
  ld.volatile.global.v4.u32 {%gpuslice_r20, %gpuslice_r21, %gpuslice_r22, %gpuslice_r23}, [%gpuslice_d2];
  ld.volatile.global.v4.u32 {%gpuslice_r24, %gpuslice_r25, %gpuslice_r26, %gpuslice_r27}, [%gpuslice_d2+16];
  ld.volatile.global.u32 %gpuslice_r2, [%gpuslice_d0+@LEFT];
  and.b32 %gpuslice_r12, %gpuslice_r12, %gpuslice_r20;
  and.b32 %gpuslice_r13, %gpuslice_r13, %gpuslice_r21;
  and.b32 %gpuslice_r14, %gpuslice_r14, %gpuslice_r22;
  and.b32 %gpuslice_r15, %gpuslice_r15, %gpuslice_r23;
  and.b32 %gpuslice_r16, %gpuslice_r16, %gpuslice_r24;
  and.b32 %gpuslice_r17, %gpuslice_r17, %gpuslice_r25;
  and.b32 %gpuslice_r18, %gpuslice_r18, %gpuslice_r26;
  and.b32 %gpuslice_r19, %gpuslice_r19, %gpuslice_r27;
  not.b32 %gpuslice_r12, %gpuslice_r12;
  not.b32 %gpuslice_r13, %gpuslice_r13;
  not.b32 %gpuslice_r14, %gpuslice_r14;
  not.b32 %gpuslice_r15, %gpuslice_r15;
  not.b32 %gpuslice_r16, %gpuslice_r16;
  not.b32 %gpuslice_r17, %gpuslice_r17;
  not.b32 %gpuslice_r18, %gpuslice_r18;
  not.b32 %gpuslice_r19, %gpuslice_r19;
  st.volatile.global.v4.u32 [%gpuslice_d0+@FORBIDDEN], {%gpuslice_r12, %gpuslice_r13, %gpuslice_r14, %gpuslice_r15};
  st.volatile.global.v4.u32 [%gpuslice_d0+@FORBIDDEN_HIGH], {%gpuslice_r16, %gpuslice_r17, %gpuslice_r18, %gpuslice_r19};
  ld.volatile.global.u32 %gpuslice_r4, [%gpuslice_d3+@FORBIDDEN];
  setp.eq.u32 %gpuslice_p, %gpuslice_r8, 0;
  mov.u32 %gpuslice_r8, 1;
  @%gpuslice_p st.release.gpu.global.u32 [%gpuslice_d0+@POLLED], %gpuslice_r8;
  ld.param.u64 %gpuslice_d2, [@HOST];
  min.u32 %gpuslice_r5, %gpuslice_r6, %gpuslice_r10;
  st.volatile.global.v2.u32 [%gpuslice_d2+@HOST_LEFT], {%gpuslice_r2, %gpuslice_r5};
  st.shared.u32 [gpuslice_shared+28], %gpuslice_r8;
  setp.eq.u32 %gpuslice_q, 0, 0;
  bra $gpuslice_decide;
$gpuslice_forbidden:
  ld.param.u32 %gpuslice_r5, [@FLAGS];
  and.b32 %gpuslice_r5, %gpuslice_r5, @AGENT_GRID;
  setp.ne.u32 %gpuslice_p, %gpuslice_r5, 0;
  @%gpuslice_p bra $gpuslice_evicted;
  setp.eq.u64 %gpuslice_p, %gpuslice_d4, 2;
  @%gpuslice_p bra $gpuslice_rest;
  mov.u32 %gpuslice_r5, 1;
  atom.global.add.u32 %gpuslice_r5, [%gpuslice_d0+@GONE], %gpuslice_r5;
  add.u32 %gpuslice_r5, %gpuslice_r5, 1;
  ld.param.u32 %gpuslice_r4, [@WORKERS];
  setp.ne.u32 %gpuslice_p, %gpuslice_r5, %gpuslice_r4;
  @%gpuslice_p bra $gpuslice_evicted;
  mov.u32 %gpuslice_r5, 0xffffffff;
  red.global.add.u32 [%gpuslice_d0+@GONE], %gpuslice_r5;
  mov.u64 %gpuslice_d4, 2;
  st.shared.u64 [gpuslice_shared+16], %gpuslice_d4;
  ld.param.u64 %gpuslice_d1, [@HOST];
  mov.u32 %gpuslice_r5, 1;
  st.volatile.global.u32 [%gpuslice_d1+@RESTING], %gpuslice_r5;
  st.shared.u32 [gpuslice_shared+28], %gpuslice_r5;
  ld.shared.u32 %gpuslice_r1, [gpuslice_shared+24];
  @HERE
  neg.s32 %gpuslice_r2, %gpuslice_r2;
  red.global.add.u32 [%gpuslice_d1+@HERE_BYTES], %gpuslice_r2;
$gpuslice_rest:
  nanosleep.u32 2000;
  bra $gpuslice_claim;
$gpuslice_wake:
  ld.param.u64 %gpuslice_d1, [@HOST];
  mov.u32 %gpuslice_r2, 0;
  st.volatile.global.u32 [%gpuslice_d1+@RESTING], %gpuslice_r2;
  ld.shared.u32 %gpuslice_r1, [gpuslice_shared+24];
  @HERE
  red.global.add.u32 [%gpuslice_d1+@HERE_BYTES], %gpuslice_r2;
  bra $gpuslice_awake;
$gpuslice_evicted:
  mov.u64 %gpuslice_d1, 1;
  st.shared.u64 [gpuslice_shared+16], %gpuslice_d1;
$gpuslice_nothing_left:
  mov.u32 %gpuslice_r4, 0x7fffffff;
  mov.u32 %gpuslice_r5, %gpuslice_r4;
)";

constexpr std::string_view kPublishOdd = R"(
$gpuslice_publish:
  selp.b32 %gpuslice_r2, 0, 8, %gpuslice_odd;
  mov.u32 %gpuslice_r3, gpuslice_shared;
  add.u32 %gpuslice_r2, %gpuslice_r2, %gpuslice_r3;
  st.shared.u32 [%gpuslice_r2], %gpuslice_r4;
$gpuslice_wait:
)";

constexpr std::string_view kPublishAt = R"(
$gpuslice_publish:
  shr.u32 %gpuslice_r2, %gpuslice_at, 31;
  xor.b32 %gpuslice_r2, %gpuslice_r2, 1;
  shl.b32 %gpuslice_r2, %gpuslice_r2, 3;
  mov.u32 %gpuslice_r3, gpuslice_shared;
  add.u32 %gpuslice_r2, %gpuslice_r2, %gpuslice_r3;
  st.shared.v2.u32 [%gpuslice_r2], {%gpuslice_r4, %gpuslice_r5};
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
)";

/// Nobody returned early from the block-task that ends here, if %gpuslice_plain says so.
constexpr std::string_view kPlainOrJoin = R"(
  @!%gpuslice_plain bra.uni $gpuslice_join;
  bar.sync 0;
  bra.uni $gpuslice_joined;
)";

constexpr std::string_view kReadOdd = R"(
  not.pred %gpuslice_odd, %gpuslice_odd;
  selp.b32 %gpuslice_r2, 8, 0, %gpuslice_odd;
  mov.u32 %gpuslice_r3, gpuslice_shared;
  add.u32 %gpuslice_r2, %gpuslice_r2, %gpuslice_r3;
  ld.shared.u32 %gpuslice_at, [%gpuslice_r2];
  ld.param.u32 %gpuslice_r3, [@TOTAL];
  setp.ge.u32 %gpuslice_p, %gpuslice_at, %gpuslice_r3;
  @%gpuslice_p bra.uni $gpuslice_leave;
)";

constexpr std::string_view kReadAt = R"(
  not.b32 %gpuslice_r1, %gpuslice_at;
  and.b32 %gpuslice_r1, %gpuslice_r1, 0x80000000;
  shr.u32 %gpuslice_r2, %gpuslice_r1, 28;
  mov.u32 %gpuslice_r3, gpuslice_shared;
  add.u32 %gpuslice_r2, %gpuslice_r2, %gpuslice_r3;
  ld.shared.u32 %gpuslice_r0, [%gpuslice_r2];
  ld.param.u32 %gpuslice_r3, [@TOTAL];
  setp.ge.u32 %gpuslice_p, %gpuslice_r0, %gpuslice_r3;
  @%gpuslice_p bra.uni $gpuslice_leave;
  or.b32 %gpuslice_at, %gpuslice_r0, %gpuslice_r1;
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

/// The leader alone knows the chunk.
constexpr std::string_view kAdvanceOdd = R"(
  @NOT_LEADER
  @%gpuslice_p bra $gpuslice_wait;
  selp.b32 %gpuslice_r2, 8, 0, %gpuslice_odd;
  mov.u32 %gpuslice_r3, gpuslice_shared;
  add.u32 %gpuslice_r2, %gpuslice_r2, %gpuslice_r3;
  ld.shared.u32 %gpuslice_r4, [%gpuslice_r2];
  ld.shared.u32 %gpuslice_r5, [gpuslice_shared+36];
  add.u32 %gpuslice_r4, %gpuslice_r4, 1;
  setp.lt.u32 %gpuslice_p, %gpuslice_r4, %gpuslice_r5;
  @%gpuslice_p bra $gpuslice_publish;
  bra $gpuslice_claim;
)";

constexpr std::string_view kAdvanceAt = R"(
  shr.u32 %gpuslice_r2, %gpuslice_at, 31;
  shl.b32 %gpuslice_r2, %gpuslice_r2, 3;
  mov.u32 %gpuslice_r3, gpuslice_shared;
  add.u32 %gpuslice_r2, %gpuslice_r2, %gpuslice_r3;
  ld.shared.u32 %gpuslice_r2, [%gpuslice_r2+4];
  add.u32 %gpuslice_at, %gpuslice_at, 1;
  and.b32 %gpuslice_r3, %gpuslice_at, 0x7fffffff;
  setp.lt.u32 %gpuslice_p, %gpuslice_r3, %gpuslice_r2;
  @%gpuslice_p bra.uni $gpuslice_task;
  @NOT_LEADER
  @%gpuslice_p bra $gpuslice_wait;
  bra $gpuslice_claim;
)";

// r1 the SM it started on, r3 whether it posted, r4 left, r5 workers + extra, r6 what it was about; d0 slot, d4 host.
constexpr std::string_view kLeave = R"(
$gpuslice_leave:
  @NOT_LEADER
  @%gpuslice_p bra $gpuslice_return;
  ld.param.u64 %gpuslice_d0, [@SLOT];
  ld.param.u64 %gpuslice_d4, [@HOST];
  ld.shared.u32 %gpuslice_r6, [gpuslice_shared+16];
  ld.shared.v2.u32 {%gpuslice_r1, %gpuslice_r3}, [gpuslice_shared+24];
  setp.ne.u32 %gpuslice_q, %gpuslice_r6, 1;
  @%gpuslice_q bra $gpuslice_not_evicted;
  mov.u64 %gpuslice_d2, %globaltimer;
  st.volatile.global.u64 [%gpuslice_d4+@LEFT_NS], %gpuslice_d2;
$gpuslice_not_evicted:
  setp.eq.u32 %gpuslice_p, %gpuslice_r6, 2;
  @%gpuslice_p bra $gpuslice_not_here;
  @HERE
  neg.s32 %gpuslice_r2, %gpuslice_r2;
  red.global.add.u32 [%gpuslice_d1+@HERE_BYTES], %gpuslice_r2;
$gpuslice_not_here:
  ld.param.u32 %gpuslice_r2, [@FLAGS];
  and.b32 %gpuslice_r2, %gpuslice_r2, @AGENT_GRID;
  or.b32 %gpuslice_r3, %gpuslice_r3, %gpuslice_r2;
  setp.ne.u32 %gpuslice_p, %gpuslice_r3, 0;
  @%gpuslice_p fence.acq_rel.sys;
  setp.ne.u32 %gpuslice_p, %gpuslice_r2, 0;
  @%gpuslice_p bra $gpuslice_count_out;
  @!%gpuslice_q bra $gpuslice_count_out;
  mov.u32 %gpuslice_r4, 1;
  atom.global.add.u32 %gpuslice_r4, [%gpuslice_d0+@GONE], %gpuslice_r4;
  add.u32 %gpuslice_r4, %gpuslice_r4, 1;
  ld.param.u32 %gpuslice_r5, [@WORKERS];
  setp.ne.u32 %gpuslice_p, %gpuslice_r4, %gpuslice_r5;
  @%gpuslice_p bra $gpuslice_count_out;
  fence.acq_rel.sys;
$gpuslice_await:
  ld.acquire.gpu.global.u32 %gpuslice_r4, [%gpuslice_d0+@LEFT];
  ld.volatile.global.u32 %gpuslice_r9, [%gpuslice_d0+@EXTRA];
  ld.param.u32 %gpuslice_r5, [@WORKERS];
  add.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r9;
  sub.u32 %gpuslice_r5, %gpuslice_r5, 1;
  setp.eq.u32 %gpuslice_p, %gpuslice_r4, %gpuslice_r5;
  @%gpuslice_p bra $gpuslice_hold_no_more;
  nanosleep.u32 100;
  bra $gpuslice_await;
$gpuslice_hold_no_more:
  mov.u32 %gpuslice_r4, 1;
  atom.acquire.gpu.global.add.u32 %gpuslice_r2, [%gpuslice_d0+@LEFT], %gpuslice_r4;
  add.u32 %gpuslice_r2, %gpuslice_r2, 1;
  setp.eq.u32 %gpuslice_p, %gpuslice_r9, 0;
  @%gpuslice_p bra $gpuslice_done;
  fence.acq_rel.sys;
$gpuslice_done:
  mov.u64 %gpuslice_d2, %globaltimer;
  st.volatile.global.u64 [%gpuslice_d4+@DONE_NS], %gpuslice_d2;
  ld.param.u32 %gpuslice_r3, [@TOTAL];
  st.volatile.global.v4.u32 [%gpuslice_d4], {%gpuslice_r4, %gpuslice_r4, %gpuslice_r2, %gpuslice_r3};
  bra $gpuslice_return;
$gpuslice_count_out:
  mov.u32 %gpuslice_r4, 1;
  atom.acquire.gpu.global.add.u32 %gpuslice_r4, [%gpuslice_d0+@LEFT], %gpuslice_r4;
  add.u32 %gpuslice_r4, %gpuslice_r4, 1;
  ld.volatile.global.u32 %gpuslice_r9, [%gpuslice_d0+@EXTRA];
  ld.param.u32 %gpuslice_r5, [@WORKERS];
  add.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r9;
  setp.eq.u32 %gpuslice_p, %gpuslice_r4, %gpuslice_r5;
  @%gpuslice_p st.volatile.global.u32 [%gpuslice_d4+@HOST_LEFT], %gpuslice_r4;
$gpuslice_return:
  ret;
)";
// The store of four words above writes started, done, left and progress at once; polls post left and progress.
static_assert(offsetof(HostSlot, started) == 0 && offsetof(HostSlot, done) == 4 && offsetof(HostSlot, left) == 8 &&
              offsetof(HostSlot, progress) == 12);
// The load of four words reads next, polling, polled and extra.
static_assert(offsetof(DeviceSlot, next) == 0 && offsetof(DeviceSlot, polling) == 4 &&
              offsetof(DeviceSlot, polled) == 8 && offsetof(DeviceSlot, extra) == 12);
// The prologue and the end use 252 and 3 to find an SM's byte, the claim 28 to find its word.
static_assert(kMaxSms == 256);

/// What the @WORDS of the text stand for.
class Names {
 public:
  explicit Names(const std::string& args) : args_(args) {}

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
        {"SLOT", offsetof(LaunchArgs, slot)},     {"HOST", offsetof(LaunchArgs, host)},
        {"GRANT", offsetof(LaunchArgs, grant)},   {"STREAM_SMS", offsetof(LaunchArgs, stream_sms)},
        {"TOTAL", offsetof(LaunchArgs, total)},   {"GRID_X", offsetof(LaunchArgs, grid_x)},
        {"GRID_Y", offsetof(LaunchArgs, grid_y)}, {"GRID_Z", offsetof(LaunchArgs, grid_z)},
        {"CHUNK", offsetof(LaunchArgs, chunk)},   {"TAPER", offsetof(LaunchArgs, taper)},
        {"FLAGS", offsetof(LaunchArgs, flags)},   {"WORKERS", offsetof(LaunchArgs, workers)},
    };
    static constexpr Row kNumbers[] = {
        {"NEXT", offsetof(DeviceSlot, next)},
        {"POLLING", offsetof(DeviceSlot, polling)},
        {"POLLED", offsetof(DeviceSlot, polled)},
        {"EXTRA", offsetof(DeviceSlot, extra)},
        {"LEFT", offsetof(DeviceSlot, left)},
        {"GONE", offsetof(DeviceSlot, gone)},
        {"FORBIDDEN", offsetof(DeviceSlot, forbidden)},
        {"FORBIDDEN_HIGH", offsetof(DeviceSlot, forbidden) + 16},
        {"HERE_BYTES", offsetof(DeviceSlot, here)},
        {"STARTED", offsetof(HostSlot, started)},
        {"HOST_LEFT", offsetof(HostSlot, left)},
        {"START_NS", offsetof(HostSlot, start_ns)},
        {"DONE_NS", offsetof(HostSlot, done_ns)},
        {"LEFT_NS", offsetof(HostSlot, left_ns)},
        {"TASK_NS", offsetof(HostSlot, task_ns)},
        {"RESTING", offsetof(HostSlot, resting)},
        {"ALLOWED", offsetof(LaunchArgs, allowed)},  // after the address of the parameter
        {"AGENT_GRID", kAgentGrid},
        {"POLL_EVERY", kPollEveryNs},
    };
    if (name == "NOT_LEADER") return std::string(kNotLeader);
    if (name == "HERE") return std::string(kHere);
    if (name == "ARGS") return args_;
    for (const Row& row : kArgs) {
      if (row.name == name) return arg(row.offset);
    }
    for (const Row& row : kNumbers) {
      if (row.name == name) return std::to_string(row.offset);
    }
    return "@" + std::string(name);
  }

  std::string args_;
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
  const Names names(kernel.args_name());

  std::string text = ".version 6.3\n.target sm_70\n.address_size 64\n.entry worker()\n{";
  text += kDeclarations;
  text += shares ? kStartOdd : kStartAt;
  if (skips || two_bodies) text += kNotPlain;
  text += names.expand(kPrologue);
  text += names.expand(kClaim);
  text += shares ? kPublishOdd : kPublishAt;
  if (skips || two_bodies) text += kPlainOrJoin;
  text += joins ? kJoiningBarrier : kPlainBarrier;
  text += names.expand(shares ? kReadOdd : kReadAt);
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
  text += names.expand(shares ? kAdvanceOdd : kAdvanceAt);
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
