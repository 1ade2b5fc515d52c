// The worker's text (wrap_in_claim_loop.cc) that claims a chunk, or decides not to. The shared words: start_text.h.
#pragma once

#include <string_view>

namespace gpuctl::ptx::pass {

/// The loop begins here for all threads, wherever they come from (wrap_in_claim_loop.cc says why). r9 is 1 for a worker
/// that has its first chunk already, or may claim it without looking because its SM is in the range of LaunchArgs.
inline constexpr std::string_view kNext = R"(
$gpuslice_next:
  @%gpuslice_others bra $gpuslice_wait;
  setp.ne.u32 %gpuslice_p, %gpuslice_r9, 0;
  @%gpuslice_p bra $gpuslice_first;
)";

/// Continues with the rest of the chunk, where a chunk is published in parts.
inline constexpr std::string_view kNextPart = R"(
  ld.shared.v2.u32 {%gpuslice_r4, %gpuslice_r5}, [gpuslice_shared+8];
  setp.lt.u32 %gpuslice_p, %gpuslice_r4, %gpuslice_r5;
  @%gpuslice_p bra $gpuslice_part;
)";

// An eager claim that may be the worker's last also counts the worker out. Up to that atomic, p says that it does.
//
// r1 SM; r3 time; r6 `next`, or what was claimed from there; r7 polling; r8 range; r9 `looked`, then the range before a
// poll; r10 total; r11 the size of a chunk; d0 slot; d4 the leader's state; closed: claims continue at `looked`. q has
// two uses. First: as far as the leader knows, something is left; if nothing is, it requests nothing but runs the same
// instructions (with a jump instead, ptxas gave bodies more registers). Then: the leader has polled, so the chunk is
// measured. Of the first chunks, worker 0's is measured. The code of an eager leader comes first, because all other
// threads wait for it.
inline constexpr std::string_view kClaim = R"(
$gpuslice_claim:
  ld.param.u64 %gpuslice_d0, [@SLOT];
  ld.param.u32 %gpuslice_r10, [@TOTAL];
  ld.shared.v2.u32 {%gpuslice_r6, %gpuslice_r2}, [gpuslice_shared+24];
  setp.lt.u32 %gpuslice_q, %gpuslice_r6, %gpuslice_r10;
  @SIZE
  setp.eq.and.u32 %gpuslice_eager, %gpuslice_r2, 0, %gpuslice_q;
  ld.param.u32 %gpuslice_r3, [@WORKERS];
  mad.lo.u32 %gpuslice_r5, %gpuslice_r3, %gpuslice_r11, %gpuslice_r6;
  ld.shared.u32 %gpuslice_r4, [gpuslice_shared+56];
  setp.ge.and.u32 %gpuslice_p, %gpuslice_r5, %gpuslice_r10, %gpuslice_eager;
  setp.eq.and.u32 %gpuslice_p, %gpuslice_r4, 0, %gpuslice_p;
  selp.b32 %gpuslice_r5, 1, 0, %gpuslice_p;
  mov.b64 %gpuslice_d1, {%gpuslice_r11, %gpuslice_r5};
  @%gpuslice_eager atom.global.add.u64 %gpuslice_d1, [%gpuslice_d0+@NEXT], %gpuslice_d1;
  @%gpuslice_eager mov.b64 {%gpuslice_r6, %gpuslice_r5}, %gpuslice_d1;
  add.u32 %gpuslice_r5, %gpuslice_r5, 1;
  setp.eq.u32 %gpuslice_closed, %gpuslice_r5, %gpuslice_r3;
  selp.b32 %gpuslice_r5, 2, 1, %gpuslice_closed;
  @%gpuslice_p st.shared.u32 [gpuslice_shared+56], %gpuslice_r5;
  mov.u32 %gpuslice_r9, 0;
  xor.pred %gpuslice_p, %gpuslice_eager, %gpuslice_q;
  @%gpuslice_p ld.volatile.global.u32 %gpuslice_r6, [%gpuslice_d0+@NEXT];
  @%gpuslice_p ld.volatile.global.u32 %gpuslice_r9, [%gpuslice_d0+@LOOKED];
  ld.volatile.global.v2.u32 {%gpuslice_r7, %gpuslice_r8}, [%gpuslice_d0+@STATE];
$gpuslice_asked:
  mov.u32 %gpuslice_r1, %smid;
  ld.shared.u64 %gpuslice_d4, [gpuslice_shared+16];
  setp.lt.s32 %gpuslice_p, %gpuslice_r6, 0;
  setp.lt.s32 %gpuslice_closed, %gpuslice_r9, 0;
  or.pred %gpuslice_p, %gpuslice_p, %gpuslice_closed;
  @%gpuslice_p bra $gpuslice_is_closed;
$gpuslice_known:
  ld.param.u32 %gpuslice_r4, [@GIVEN];
  add.u32 %gpuslice_r6, %gpuslice_r6, %gpuslice_r4;
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
  selp.b32 %gpuslice_r4, @POLL_EAGERLY, @POLL_EVERY, %gpuslice_eager;
  setp.gt.or.u32 %gpuslice_p, %gpuslice_r5, %gpuslice_r4, %gpuslice_p;
  @%gpuslice_p bra $gpuslice_poll;
$gpuslice_decide:
  mov.u32 %gpuslice_r12, %gpuslice_r8;
  ld.param.u32 %gpuslice_r5, [@RANGE];
  setp.eq.u32 %gpuslice_p, %gpuslice_r8, 0;
  selp.b32 %gpuslice_r8, %gpuslice_r5, %gpuslice_r8, %gpuslice_p;
  @OUTSIDE
  mov.u32 %gpuslice_r4, %gpuslice_r6;
  @!%gpuslice_eager bra $gpuslice_looked;
  mov.u32 %gpuslice_r3, 1;
  @%gpuslice_p st.shared.u32 [gpuslice_shared+28], %gpuslice_r3;
  or.pred %gpuslice_p, %gpuslice_p, %gpuslice_q;
  ld.param.u32 %gpuslice_r5, [@QUICK_BELOW];
  setp.ge.or.u32 %gpuslice_p, %gpuslice_r6, %gpuslice_r5, %gpuslice_p;
  ld.param.u32 %gpuslice_r3, [@CHUNK];
  and.b32 %gpuslice_r3, %gpuslice_r3, 0xffff;
  selp.b32 %gpuslice_r3, 0, %gpuslice_r3, %gpuslice_p;
  st.shared.v2.u32 [gpuslice_shared+48], {%gpuslice_r3, %gpuslice_r12};
  bra $gpuslice_awake;
$gpuslice_is_closed:
  mov.u32 %gpuslice_r4, 1;
  @!%gpuslice_eager bra $gpuslice_go_on;
  st.shared.u32 [gpuslice_shared+28], %gpuslice_r4;
  setp.ne.u32 %gpuslice_eager, 0, 0;
  mov.u32 %gpuslice_r4, 0;
  st.shared.u32 [gpuslice_shared+48], %gpuslice_r4;
  ld.volatile.global.u32 %gpuslice_r6, [%gpuslice_d0+@NEXT];
  ld.volatile.global.u32 %gpuslice_r9, [%gpuslice_d0+@LOOKED];
  ld.volatile.global.v2.u32 {%gpuslice_r7, %gpuslice_r8}, [%gpuslice_d0+@STATE];
$gpuslice_go_on:
  setp.lt.s32 %gpuslice_closed, %gpuslice_r9, 0;
  and.b32 %gpuslice_r6, %gpuslice_r9, @NUMBERS;
  @!%gpuslice_closed bra $gpuslice_rest;
  bra $gpuslice_known;
$gpuslice_looked:
  @%gpuslice_p bra $gpuslice_forbidden;
  ld.shared.u32 %gpuslice_r2, [gpuslice_shared+28];
  and.b32 %gpuslice_r2, %gpuslice_r2, 2;
  selp.b32 %gpuslice_r3, 1, %gpuslice_r2, %gpuslice_closed;
  st.shared.u32 [gpuslice_shared+28], %gpuslice_r3;
  bra $gpuslice_take;
$gpuslice_first:
  ld.param.u64 %gpuslice_d0, [@SLOT];
  mov.u32 %gpuslice_r6, 0;
  setp.ne.u32 %gpuslice_closed, 0, 0;
  ld.param.u32 %gpuslice_r10, [@TOTAL];
  mov.u64 %gpuslice_d4, 0;
  mov.u32 %gpuslice_r4, %ctaid.x;
  setp.eq.u32 %gpuslice_q, %gpuslice_r4, 0;
  ld.param.u32 %gpuslice_r11, [@FIRST];
  mul.lo.u32 %gpuslice_r4, %gpuslice_r4, %gpuslice_r11;
  setp.ne.u32 %gpuslice_p, %gpuslice_r11, 0;
  @%gpuslice_p bra $gpuslice_given;
$gpuslice_take:
  @SIZE
  @%gpuslice_closed atom.global.add.u32 %gpuslice_r4, [%gpuslice_d0+@LOOKED], %gpuslice_r11;
  @!%gpuslice_closed atom.global.add.u32 %gpuslice_r4, [%gpuslice_d0+@NEXT], %gpuslice_r11;
  setp.lt.s32 %gpuslice_p, %gpuslice_r4, 0;
  xor.pred %gpuslice_p, %gpuslice_p, %gpuslice_closed;
  mov.u32 %gpuslice_r3, 1;
  @%gpuslice_p st.shared.u32 [gpuslice_shared+28], %gpuslice_r3;
  @%gpuslice_p bra $gpuslice_rest;
  and.b32 %gpuslice_r4, %gpuslice_r4, @NUMBERS;
  ld.param.u32 %gpuslice_r2, [@GIVEN];
  add.u32 %gpuslice_r4, %gpuslice_r4, %gpuslice_r2;
  setp.eq.u64 %gpuslice_p, %gpuslice_d4, 2;
  @%gpuslice_p bra $gpuslice_wake;
$gpuslice_awake:
  add.u32 %gpuslice_r5, %gpuslice_r4, %gpuslice_r11;
  st.shared.u32 [gpuslice_shared+24], %gpuslice_r5;
$gpuslice_given:
  mov.u64 %gpuslice_d1, 0;
  @%gpuslice_q mov.u64 %gpuslice_d1, %globaltimer;
  st.shared.u64 [gpuslice_shared+16], %gpuslice_d1;
  setp.ge.u32 %gpuslice_p, %gpuslice_r4, %gpuslice_r10;
  @%gpuslice_p bra $gpuslice_nothing_left;
)";

inline constexpr std::string_view kClaimed = R"(
  st.shared.u32 [gpuslice_shared+32], %gpuslice_r3;
  setp.ge.u32 %gpuslice_p, %gpuslice_r4, %gpuslice_r5;
  @%gpuslice_p bra $gpuslice_rest;
  bra $gpuslice_part;
$gpuslice_measure:
  @MEASURE
  bra $gpuslice_measured;
$gpuslice_poll:
  atom.global.cas.b32 %gpuslice_r5, [%gpuslice_d0+@POLLING], %gpuslice_r7, %gpuslice_r3;
  setp.ne.u32 %gpuslice_p, %gpuslice_r5, %gpuslice_r7;
  @%gpuslice_p bra $gpuslice_decide;
  ld.param.u32 %gpuslice_r9, [@RANGE];
  setp.eq.u32 %gpuslice_p, %gpuslice_r8, 0;
  selp.b32 %gpuslice_r9, %gpuslice_r9, %gpuslice_r8, %gpuslice_p;
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
  and.b32 %gpuslice_r13, %gpuslice_r8, 0xffff;
  and.b32 %gpuslice_r14, %gpuslice_r9, 0xffff;
  setp.gt.u32 %gpuslice_p, %gpuslice_r13, %gpuslice_r14;
  shr.u32 %gpuslice_r13, %gpuslice_r8, 16;
  shr.u32 %gpuslice_r14, %gpuslice_r9, 16;
  setp.lt.or.u32 %gpuslice_p, %gpuslice_r13, %gpuslice_r14, %gpuslice_p;
  mov.u32 %gpuslice_r13, @CLOSED;
  @%gpuslice_p atom.global.exch.b32 %gpuslice_r14, [%gpuslice_d0+@NEXT], %gpuslice_r13;
  setp.ge.and.s32 %gpuslice_p, %gpuslice_r14, 0, %gpuslice_p;
  or.b32 %gpuslice_r14, %gpuslice_r14, %gpuslice_r13;
  @%gpuslice_p st.volatile.global.u32 [%gpuslice_d0+@LOOKED], %gpuslice_r14;
  or.pred %gpuslice_closed, %gpuslice_closed, %gpuslice_p;
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
  setp.eq.u64 %gpuslice_p, %gpuslice_d4, 2;
  @%gpuslice_p bra $gpuslice_rest;
  ld.param.u32 %gpuslice_r3, [@WORKERS];
  ld.shared.u32 %gpuslice_r4, [gpuslice_shared+56];
  @COUNT_OUT
  st.shared.u32 [gpuslice_shared+56], %gpuslice_r4;
  setp.ne.u32 %gpuslice_p, %gpuslice_r4, 2;
  @%gpuslice_p bra $gpuslice_evicted;
  mov.u64 %gpuslice_d4, 2;
  st.shared.u64 [gpuslice_shared+16], %gpuslice_d4;
  ld.param.u64 %gpuslice_d1, [@HOST];
  mov.u32 %gpuslice_r5, 1;
  st.volatile.global.u32 [%gpuslice_d1+@RESTING], %gpuslice_r5;
  ld.shared.u32 %gpuslice_r1, [gpuslice_shared+36];
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
  ld.shared.u32 %gpuslice_r1, [gpuslice_shared+36];
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

}  // namespace gpuctl::ptx::pass
