// The worker's text (wrap_in_claim_loop.cc) up to the barrier behind which a claim is read.
//
// Shared words: +0 and +4 the block-tasks to take next, by turns (kPublish); +8 what is left of the leader's chunk to
// publish: where it begins and ends; +16 (64 bits) what it is about (below); +24 the SM it started on; +28 below this number
// all are claimed, as far as it knows; +32 block-tasks in its chunk; +36 whether it looks before it claims, though the launch is
// eager.
//
// What it is about: the time when a chunk to be measured began; 0 nothing; 1 it leaves because of its SM; 2 it rests.
#pragma once

#include <string_view>

namespace gpuctl::ptx::pass {

inline constexpr std::string_view kDeclarations = R"(
  .reg .pred %gpuslice_p, %gpuslice_q, %gpuslice_others, %gpuslice_odd, %gpuslice_plain, %gpuslice_someone, %gpuslice_eager;
  .reg .b32 %gpuslice_at;
  .reg .b32 %gpuslice_ctaid_x, %gpuslice_ctaid_y, %gpuslice_ctaid_z;
  .reg .b32 %gpuslice_nctaid_x, %gpuslice_nctaid_y, %gpuslice_nctaid_z;
  .reg .b32 %gpuslice_r<16>;
  .reg .b64 %gpuslice_d<5>;
  .shared .align 16 .b8 gpuslice_shared[40];
)";

inline constexpr std::string_view kStart = R"(
  setp.ne.u32 %gpuslice_odd, 0, 0;
)";

/// The leader announces its worker. r9: what it is to do first, as kNext says.
inline constexpr std::string_view kPrologue = R"(
  mov.u32 %gpuslice_r0, %tid.x;
  mov.u32 %gpuslice_r1, %tid.y;
  mov.u32 %gpuslice_r2, %tid.z;
  or.b32 %gpuslice_r0, %gpuslice_r0, %gpuslice_r1;
  or.b32 %gpuslice_r0, %gpuslice_r0, %gpuslice_r2;
  setp.ne.u32 %gpuslice_others, %gpuslice_r0, 0;
  @%gpuslice_others bra $gpuslice_next;
  mov.u64 %gpuslice_d4, 0;
  st.shared.u64 [gpuslice_shared+16], %gpuslice_d4;
  st.shared.u64 [gpuslice_shared+8], %gpuslice_d4;
  ld.param.u64 %gpuslice_d0, [@SLOT];
  mov.u32 %gpuslice_r1, %smid;
  @HERE
  red.global.add.u32 [%gpuslice_d1+@HERE_BYTES], %gpuslice_r2;
  mov.u32 %gpuslice_r2, 0;
  st.shared.u32 [gpuslice_shared+24], %gpuslice_r1;
  st.shared.u32 [gpuslice_shared+28], %gpuslice_r2;
  st.shared.u32 [gpuslice_shared+36], %gpuslice_r2;
  mov.u32 %gpuslice_r2, 1;
  ld.param.u32 %gpuslice_r0, [@FLAGS];
  and.b32 %gpuslice_r0, %gpuslice_r0, @AGENT_GRID;
  setp.eq.u32 %gpuslice_p, %gpuslice_r0, 0;
  @%gpuslice_p bra $gpuslice_in_stream;
  red.global.add.u32 [%gpuslice_d0+@EXTRA], %gpuslice_r2;
  fence.acq_rel.gpu;  // the holder counts on it for whatever this worker claims
  mov.u32 %gpuslice_r9, 0;
  bra $gpuslice_next;
$gpuslice_in_stream:
  mov.u32 %gpuslice_r0, %ctaid.x;
  setp.eq.u32 %gpuslice_q, %gpuslice_r0, 0;
  @!%gpuslice_q bra $gpuslice_announced;
  ld.param.u64 %gpuslice_d1, [@HOST];
  mov.u64 %gpuslice_d2, %globaltimer;
  st.volatile.global.u64 [%gpuslice_d1+@START_NS], %gpuslice_d2;
  st.volatile.global.u32 [%gpuslice_d1+@STARTED], %gpuslice_r2;
$gpuslice_announced:
  ld.param.u32 %gpuslice_r8, [@RANGE];
  @OUTSIDE
  ld.param.u32 %gpuslice_r5, [@FIRST];
  setp.eq.and.u32 %gpuslice_p, %gpuslice_r5, 0, %gpuslice_p;
  selp.b32 %gpuslice_r9, 0, 1, %gpuslice_p;
)";

/// The loop begins here, for all threads and from wherever they come (wrap_in_claim_loop.cc says why). r9: 1 for a worker
/// that has its first chunk already, or may claim it without looking, as its SM is allowed as far as its launch knew.
inline constexpr std::string_view kNext = R"(
$gpuslice_next:
  @%gpuslice_others bra $gpuslice_wait;
  setp.ne.u32 %gpuslice_p, %gpuslice_r9, 0;
  @%gpuslice_p bra $gpuslice_first;
)";

/// The rest of the chunk, where it is published in parts.
inline constexpr std::string_view kNextPart = R"(
  ld.shared.v2.u32 {%gpuslice_r4, %gpuslice_r5}, [gpuslice_shared+8];
  setp.lt.u32 %gpuslice_p, %gpuslice_r4, %gpuslice_r5;
  @%gpuslice_p bra $gpuslice_part;
)";

// r1 SM, r3 time, r6 next or what was claimed from there, r7 polling, r8 range, r10 total, r11 the size of a chunk; d0 slot,
// d4 what the leader is about; q: it has polled, so the chunk is measured. Of the first chunks, that of worker 0 is. Before, q:
// for all it knows something is left; else it asks for nothing, but goes the same way. (With a jump, bodies got more registers.)
inline constexpr std::string_view kClaim = R"(
$gpuslice_claim:
  ld.param.u64 %gpuslice_d0, [@SLOT];
  mov.u32 %gpuslice_r1, %smid;
  ld.param.u32 %gpuslice_r10, [@TOTAL];
  ld.shared.u32 %gpuslice_r6, [gpuslice_shared+28];
  ld.param.u32 %gpuslice_r4, [@FIRST];
  ld.param.u32 %gpuslice_r5, [@WORKERS];
  mul.lo.u32 %gpuslice_r4, %gpuslice_r4, %gpuslice_r5;
  max.u32 %gpuslice_r6, %gpuslice_r6, %gpuslice_r4;
  setp.lt.u32 %gpuslice_q, %gpuslice_r6, %gpuslice_r10;
  @SIZE
  ld.shared.u32 %gpuslice_r4, [gpuslice_shared+36];
  ld.param.u32 %gpuslice_r5, [@FLAGS];
  and.b32 %gpuslice_r5, %gpuslice_r5, @EAGER;
  setp.eq.u32 %gpuslice_p, %gpuslice_r4, 0;
  setp.ne.and.u32 %gpuslice_eager, %gpuslice_r5, 0, %gpuslice_p;
  and.pred %gpuslice_p, %gpuslice_eager, %gpuslice_q;
  @%gpuslice_p atom.global.add.u32 %gpuslice_r6, [%gpuslice_d0+@NEXT], %gpuslice_r11;
  xor.pred %gpuslice_p, %gpuslice_p, %gpuslice_q;
  @%gpuslice_p ld.volatile.global.u32 %gpuslice_r6, [%gpuslice_d0+@NEXT];
  ld.volatile.global.v2.u32 {%gpuslice_r7, %gpuslice_r8}, [%gpuslice_d0+@STATE];
  ld.param.u32 %gpuslice_r4, [@FIRST];
  ld.param.u32 %gpuslice_r5, [@WORKERS];
  mad.lo.u32 %gpuslice_r6, %gpuslice_r4, %gpuslice_r5, %gpuslice_r6;
  st.shared.u32 [gpuslice_shared+28], %gpuslice_r6;
  ld.shared.u64 %gpuslice_d4, [gpuslice_shared+16];
  setp.gt.u64 %gpuslice_p, %gpuslice_d4, 2;
  @%gpuslice_p bra $gpuslice_measure;
$gpuslice_measured:
  setp.ge.u32 %gpuslice_p, %gpuslice_r6, %gpuslice_r10;
  @%gpuslice_p bra $gpuslice_nothing_left;
  setp.ne.u32 %gpuslice_q, 0, 0;
  mov.u32 %gpuslice_r3, %globaltimer_lo;
  or.b32 %gpuslice_r3, %gpuslice_r3, 1;
  sub.u32 %gpuslice_r5, %gpuslice_r3, %gpuslice_r7;
  setp.eq.u32 %gpuslice_p, %gpuslice_r7, 0;
  setp.gt.or.u32 %gpuslice_p, %gpuslice_r5, @POLL_EVERY, %gpuslice_p;
  @%gpuslice_p bra $gpuslice_poll;
$gpuslice_decide:
  ld.param.u32 %gpuslice_r5, [@RANGE];
  setp.eq.u32 %gpuslice_p, %gpuslice_r8, 0;
  selp.b32 %gpuslice_r8, %gpuslice_r5, %gpuslice_r8, %gpuslice_p;
  @OUTSIDE
  mov.u32 %gpuslice_r4, %gpuslice_r6;
  @!%gpuslice_eager bra $gpuslice_looked;
  selp.b32 %gpuslice_r3, 1, 0, %gpuslice_p;
  st.shared.u32 [gpuslice_shared+36], %gpuslice_r3;
  bra $gpuslice_awake;
$gpuslice_looked:
  @%gpuslice_p bra $gpuslice_forbidden;
  mov.u32 %gpuslice_r3, 0;
  st.shared.u32 [gpuslice_shared+36], %gpuslice_r3;
  bra $gpuslice_take;
$gpuslice_first:
  ld.param.u64 %gpuslice_d0, [@SLOT];
  mov.u32 %gpuslice_r6, 0;
  ld.param.u32 %gpuslice_r10, [@TOTAL];
  mov.u64 %gpuslice_d4, 0;
  mov.u32 %gpuslice_r4, %ctaid.x;
  setp.eq.u32 %gpuslice_q, %gpuslice_r4, 0;
  ld.param.u32 %gpuslice_r11, [@FIRST];
  mul.lo.u32 %gpuslice_r4, %gpuslice_r4, %gpuslice_r11;
  setp.ne.u32 %gpuslice_p, %gpuslice_r11, 0;
  @%gpuslice_p bra $gpuslice_awake;
$gpuslice_take:
  @SIZE
  atom.global.add.u32 %gpuslice_r4, [%gpuslice_d0+@NEXT], %gpuslice_r11;
  ld.param.u32 %gpuslice_r2, [@FIRST];
  ld.param.u32 %gpuslice_r3, [@WORKERS];
  mad.lo.u32 %gpuslice_r4, %gpuslice_r2, %gpuslice_r3, %gpuslice_r4;
  setp.eq.u64 %gpuslice_p, %gpuslice_d4, 2;
  @%gpuslice_p bra $gpuslice_wake;
$gpuslice_awake:
  mov.u64 %gpuslice_d1, 0;
  @%gpuslice_q mov.u64 %gpuslice_d1, %globaltimer;
  st.shared.u64 [gpuslice_shared+16], %gpuslice_d1;
  add.u32 %gpuslice_r5, %gpuslice_r4, %gpuslice_r11;
  st.shared.u32 [gpuslice_shared+28], %gpuslice_r5;
  setp.ge.u32 %gpuslice_p, %gpuslice_r4, %gpuslice_r10;
  @%gpuslice_p bra $gpuslice_nothing_left;
)";

inline constexpr std::string_view kClaimed = R"(
  st.shared.u32 [gpuslice_shared+32], %gpuslice_r3;
  setp.ge.u32 %gpuslice_p, %gpuslice_r4, %gpuslice_r5;
  @%gpuslice_p bra $gpuslice_rest;
  bra $gpuslice_part;
$gpuslice_measure:
  mov.u64 %gpuslice_d1, %globaltimer;
  sub.u64 %gpuslice_d1, %gpuslice_d1, %gpuslice_d4;
  min.u64 %gpuslice_d1, %gpuslice_d1, 0xffffffff;
  cvt.u32.u64 %gpuslice_r3, %gpuslice_d1;
  ld.shared.u32 %gpuslice_r5, [gpuslice_shared+32];
  div.u32 %gpuslice_r3, %gpuslice_r3, %gpuslice_r5;
  max.u32 %gpuslice_r3, %gpuslice_r3, 1;
  st.volatile.global.u32 [%gpuslice_d0+@TASK_NS], %gpuslice_r3;
  mov.u64 %gpuslice_d4, 0;
  st.shared.u64 [gpuslice_shared+16], %gpuslice_d4;
  bra $gpuslice_measured;
$gpuslice_poll:
  atom.global.cas.b32 %gpuslice_r5, [%gpuslice_d0+@POLLING], %gpuslice_r7, %gpuslice_r3;
  setp.ne.u32 %gpuslice_p, %gpuslice_r5, %gpuslice_r7;
  @%gpuslice_p bra $gpuslice_decide;
  ld.param.u64 %gpuslice_d1, [@POLLED];
  ld.volatile.global.v4.u32 {%gpuslice_r12, %gpuslice_r13, %gpuslice_r14, %gpuslice_r15}, [%gpuslice_d1];
  ld.param.u32 %gpuslice_r5, [@LIMIT];
  setp.lt.u32 %gpuslice_p, %gpuslice_r5, 4;
  selp.b32 %gpuslice_r14, %gpuslice_r14, %gpuslice_r15, %gpuslice_p;
  setp.lt.u32 %gpuslice_p, %gpuslice_r5, 2;
  selp.b32 %gpuslice_r14, %gpuslice_r13, %gpuslice_r14, %gpuslice_p;
  and.b32 %gpuslice_r5, %gpuslice_r5, 1;
  shl.b32 %gpuslice_r5, %gpuslice_r5, 4;
  shr.u32 %gpuslice_r14, %gpuslice_r14, %gpuslice_r5;
  and.b32 %gpuslice_r13, %gpuslice_r14, 255;
  shr.u32 %gpuslice_r14, %gpuslice_r14, 8;
  and.b32 %gpuslice_r14, %gpuslice_r14, 255;
  add.u32 %gpuslice_r14, %gpuslice_r14, 1;
  min.u32 %gpuslice_r14, %gpuslice_r14, %gpuslice_r12;
  setp.lt.u32 %gpuslice_p, %gpuslice_r13, %gpuslice_r14;
  shl.b32 %gpuslice_r14, %gpuslice_r14, 16;
  or.b32 %gpuslice_r8, %gpuslice_r13, %gpuslice_r14;
  selp.b32 %gpuslice_r8, %gpuslice_r8, 0xffff, %gpuslice_p;
  setp.ne.u64 %gpuslice_p, %gpuslice_d4, 2;
  @%gpuslice_p bra $gpuslice_polled;
  ld.param.u64 %gpuslice_d1, [@HOST];
  ld.volatile.global.u32 %gpuslice_r5, [%gpuslice_d1+@LONE];
  setp.ne.u32 %gpuslice_p, %gpuslice_r5, 0;
  selp.b32 %gpuslice_r8, @ALL_SMS, %gpuslice_r8, %gpuslice_p;
$gpuslice_polled:
  st.volatile.global.u32 [%gpuslice_d0+@SLOT_RANGE], %gpuslice_r8;
  setp.eq.u32 %gpuslice_q, 0, 0;
  ld.volatile.global.v4.u32 {%gpuslice_r12, %gpuslice_r13, %gpuslice_r14, %gpuslice_r15}, [%gpuslice_d0+@LEFT];
  sub.u32 %gpuslice_r5, %gpuslice_r3, %gpuslice_r14;
  setp.eq.u32 %gpuslice_p, %gpuslice_r14, 0;
  setp.gt.or.u32 %gpuslice_p, %gpuslice_r5, @POST_EVERY, %gpuslice_p;
  @!%gpuslice_p bra $gpuslice_decide;
  st.volatile.global.u32 [%gpuslice_d0+@POSTED], %gpuslice_r3;
  ld.param.u64 %gpuslice_d2, [@HOST];
  min.u32 %gpuslice_r13, %gpuslice_r6, %gpuslice_r10;
  ld.volatile.global.u32 %gpuslice_r5, [%gpuslice_d0+@EXTRA];
  st.volatile.global.v4.u32 [%gpuslice_d2+@HOST_LEFT], {%gpuslice_r12, %gpuslice_r13, %gpuslice_r15, %gpuslice_r5};
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
  ld.shared.u32 %gpuslice_r1, [gpuslice_shared+24];
  @HERE
  neg.s32 %gpuslice_r2, %gpuslice_r2;
  red.global.add.u32 [%gpuslice_d1+@HERE_BYTES], %gpuslice_r2;
$gpuslice_rest:
  mov.u32 %gpuslice_r4, 1;
  bra $gpuslice_say;
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
  mov.u32 %gpuslice_r4, 0;
  bra $gpuslice_say;
)";

/// What a part must not go beyond, in r3. Blocks that differ only in what nobody reads are all the same, so a kernel that
/// reads %ctaid.x alone takes its block-tasks row by row, and finds its index without a division.
/// Block-tasks of the r11 numbers from r4 on: from r4 to r5, how many in r3. Kernels that find their index along one axis
/// take them one behind the other, whatever the order: neighbours in such a grid are near each other then too.
inline constexpr std::string_view kTasksInRow = R"(
  add.u32 %gpuslice_r5, %gpuslice_r4, %gpuslice_r11;
  ld.param.u32 %gpuslice_r3, [@TASKS];
  min.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r3;
  sub.u32 %gpuslice_r3, %gpuslice_r5, %gpuslice_r4;
  max.s32 %gpuslice_r3, %gpuslice_r3, 1;
)";

inline constexpr std::string_view kTasksInOrder = R"(
  ld.param.u32 %gpuslice_r2, [@ORDER];
  and.b32 %gpuslice_r8, %gpuslice_r2, 255;
  shr.u32 %gpuslice_r2, %gpuslice_r2, 8;
  shr.u32 %gpuslice_r4, %gpuslice_r4, %gpuslice_r2;
  bfe.u32 %gpuslice_r6, %gpuslice_r4, 0, %gpuslice_r8;
  shr.u32 %gpuslice_r4, %gpuslice_r4, %gpuslice_r8;
  add.u32 %gpuslice_r2, %gpuslice_r2, %gpuslice_r8;
  shl.b32 %gpuslice_r4, %gpuslice_r4, %gpuslice_r2;
  add.u32 %gpuslice_r4, %gpuslice_r4, %gpuslice_r6;
  shl.b32 %gpuslice_r5, %gpuslice_r11, %gpuslice_r8;
  add.u32 %gpuslice_r5, %gpuslice_r4, %gpuslice_r5;
  ld.param.u32 %gpuslice_r3, [@TASKS];
  min.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r3;
  sub.u32 %gpuslice_r3, %gpuslice_r5, %gpuslice_r4;
  max.s32 %gpuslice_r3, %gpuslice_r3, 1;
  sub.u32 %gpuslice_r3, %gpuslice_r3, 1;
  shr.u32 %gpuslice_r3, %gpuslice_r3, %gpuslice_r8;
  add.u32 %gpuslice_r3, %gpuslice_r3, 1;
)";

inline constexpr std::string_view kPartOfRow = R"(
$gpuslice_part:
  ld.param.u32 %gpuslice_r3, [@GRID_X];
)";

inline constexpr std::string_view kPartOfPlane = R"(
$gpuslice_part:
  ld.param.u32 %gpuslice_r3, [@GRID_X];
  ld.param.u32 %gpuslice_r2, [@GRID_Y];
  mul.lo.u32 %gpuslice_r3, %gpuslice_r3, %gpuslice_r2;
)";

inline constexpr std::string_view kPart = R"(
  st.shared.v2.u32 [gpuslice_shared+8], {%gpuslice_r5, %gpuslice_r5};
  ld.param.u32 %gpuslice_r2, [@TASKS];
  setp.ge.u32 %gpuslice_p, %gpuslice_r3, %gpuslice_r2;
  @%gpuslice_p bra $gpuslice_publish;
  rem.u32 %gpuslice_r2, %gpuslice_r4, %gpuslice_r3;
  sub.u32 %gpuslice_r3, %gpuslice_r3, %gpuslice_r2;
  sub.u32 %gpuslice_r6, %gpuslice_r5, %gpuslice_r4;
  min.u32 %gpuslice_r3, %gpuslice_r3, %gpuslice_r6;
  add.u32 %gpuslice_r4, %gpuslice_r4, %gpuslice_r3;
  st.shared.u32 [gpuslice_shared+8], %gpuslice_r4;
  mov.u32 %gpuslice_r4, %gpuslice_r2;
  add.u32 %gpuslice_r5, %gpuslice_r2, %gpuslice_r3;
)";

inline constexpr std::string_view kWholeChunk = R"(
$gpuslice_part:
)";

/// How many block-tasks there are from r4 to r5, in r5.
inline constexpr std::string_view kCountInRow = R"(
$gpuslice_publish:
  sub.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r4;
)";

inline constexpr std::string_view kCountInOrder = R"(
$gpuslice_publish:
  ld.param.u32 %gpuslice_r2, [@ORDER];
  and.b32 %gpuslice_r2, %gpuslice_r2, 255;
  sub.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r4;
  sub.u32 %gpuslice_r5, %gpuslice_r5, 1;
  shr.u32 %gpuslice_r5, %gpuslice_r5, %gpuslice_r2;
  add.u32 %gpuslice_r5, %gpuslice_r5, 1;
)";

/// The run's word (index_mask()), or 0 to leave, 1 to come back without a block-task.
inline constexpr std::string_view kPublish = R"(
  ld.param.u32 %gpuslice_r3, [@INDEX_MASK];
  mad.lo.u32 %gpuslice_r4, %gpuslice_r5, %gpuslice_r3, %gpuslice_r4;
  add.u32 %gpuslice_r4, %gpuslice_r4, %gpuslice_r5;
$gpuslice_say:
  selp.b32 %gpuslice_r2, 4, 0, %gpuslice_odd;
  mov.u32 %gpuslice_r3, gpuslice_shared;
  add.u32 %gpuslice_r2, %gpuslice_r2, %gpuslice_r3;
  st.shared.u32 [%gpuslice_r2], %gpuslice_r4;
$gpuslice_wait:
)";

}  // namespace gpuctl::ptx::pass
