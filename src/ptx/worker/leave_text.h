// The worker's text (wrap_in_claim_loop.cc) for leaving.
#pragma once

#include <string_view>

namespace gpuctl::ptx::pass {

// A worker that leaves has no acquire fence: it would empty the SM's first-level cache for the workers that still run
// there (measured: a kernel of one wave took a quarter longer). The holder fences at the end, when it must.
//
// r1 the SM the worker started on; r2 flags; r3 workers; r4 the shared word +56, then left; r7 task_ns; r9 extra; d0
// slot; d3 the leader's state; d4 host. r9 is loaded together with the atomic on `left`, not after its answer, because
// all others wait for the worker that is about to be the last.
inline constexpr std::string_view kLeave = R"(
$gpuslice_leave:
  @%gpuslice_others bra $gpuslice_return;
  ld.param.u64 %gpuslice_d0, [@SLOT];
  ld.param.u64 %gpuslice_d4, [@HOST];
  ld.shared.u64 %gpuslice_d3, [gpuslice_shared+16];
  ld.shared.u32 %gpuslice_r1, [gpuslice_shared+36];
  setp.ne.u64 %gpuslice_p, %gpuslice_d3, 1;
  @%gpuslice_p bra $gpuslice_not_evicted;
  mov.u64 %gpuslice_d2, %globaltimer;
  st.volatile.global.u64 [%gpuslice_d4+@LEFT_NS], %gpuslice_d2;
$gpuslice_not_evicted:
  setp.eq.u64 %gpuslice_p, %gpuslice_d3, 2;
  @%gpuslice_p bra $gpuslice_not_here;
  @HERE
  neg.s32 %gpuslice_r2, %gpuslice_r2;
  red.global.add.u32 [%gpuslice_d1+@HERE_BYTES], %gpuslice_r2;
$gpuslice_not_here:
  ld.param.u32 %gpuslice_r3, [@WORKERS];
  ld.shared.u32 %gpuslice_r4, [gpuslice_shared+56];
  @COUNT_OUT
  setp.eq.u32 %gpuslice_p, %gpuslice_r4, 2;
  @%gpuslice_p bra $gpuslice_hold;
  ld.param.u32 %gpuslice_r2, [@FLAGS];
  and.b32 %gpuslice_r2, %gpuslice_r2, @AGENT_GRID;
  setp.ne.u32 %gpuslice_p, %gpuslice_r2, 0;
  mov.u32 %gpuslice_r2, 1;
  @%gpuslice_p bra $gpuslice_agent_leaves;
  red.global.add.u32 [%gpuslice_d0+@LEFT], %gpuslice_r2;
  bra $gpuslice_return;
$gpuslice_agent_leaves:
  fence.acq_rel.sys;
  atom.global.add.u32 %gpuslice_r4, [%gpuslice_d0+@LEFT], %gpuslice_r2;
  ld.volatile.global.u32 %gpuslice_r9, [%gpuslice_d0+@EXTRA];
  add.u32 %gpuslice_r4, %gpuslice_r4, 1;
  add.u32 %gpuslice_r5, %gpuslice_r3, %gpuslice_r9;
  setp.eq.u32 %gpuslice_p, %gpuslice_r4, %gpuslice_r5;
  @%gpuslice_p st.volatile.global.u32 [%gpuslice_d4+@HOST_LEFT], %gpuslice_r4;
  bra $gpuslice_return;
)";

/// The holder counts itself in `left` and checks whether all other workers have left.
inline constexpr std::string_view kHold = R"(
$gpuslice_hold:
  mov.u32 %gpuslice_r2, 1;
  atom.global.add.u32 %gpuslice_r4, [%gpuslice_d0+@LEFT], %gpuslice_r2;
  ld.volatile.global.u32 %gpuslice_r9, [%gpuslice_d0+@EXTRA];
  ld.volatile.global.u32 %gpuslice_r7, [%gpuslice_d0+@TASK_NS];
  add.u32 %gpuslice_r4, %gpuslice_r4, 1;
  bra $gpuslice_all_left;
)";

/// The holder of a guarded kernel cannot take what is left to claim. It waits for the agent's workers to take it, and
/// posts the progress so that the agent knows what is left.
inline constexpr std::string_view kHoldUntilClaimed = R"(
$gpuslice_hold:
  mov.u32 %gpuslice_r2, 1;
  red.global.add.u32 [%gpuslice_d0+@LEFT], %gpuslice_r2;
  ld.param.u32 %gpuslice_r10, [@TOTAL];
$gpuslice_unclaimed:
  ld.volatile.global.u32 %gpuslice_r6, [%gpuslice_d0+@NEXT];
  ld.volatile.global.u32 %gpuslice_r8, [%gpuslice_d0+@LOOKED];
  setp.lt.s32 %gpuslice_p, %gpuslice_r6, 0;
  and.b32 %gpuslice_r8, %gpuslice_r8, @NUMBERS;
  selp.b32 %gpuslice_r6, %gpuslice_r8, %gpuslice_r6, %gpuslice_p;
  setp.ge.u32 %gpuslice_p, %gpuslice_r6, %gpuslice_r10;
  @%gpuslice_p bra $gpuslice_await;
  ld.volatile.global.v4.u32 {%gpuslice_r4, %gpuslice_r5, %gpuslice_r8, %gpuslice_r7}, [%gpuslice_d0+@LEFT];
  ld.volatile.global.u32 %gpuslice_r9, [%gpuslice_d0+@EXTRA];
  st.volatile.global.v4.u32 [%gpuslice_d4+@HOST_LEFT], {%gpuslice_r4, %gpuslice_r6, %gpuslice_r7, %gpuslice_r9};
  nanosleep.u32 10000;
  bra $gpuslice_unclaimed;
)";

/// Waits until all workers have left.
inline constexpr std::string_view kAwait = R"(
$gpuslice_await:
  nanosleep.u32 100;
  ld.volatile.global.u32 %gpuslice_r4, [%gpuslice_d0+@LEFT];
  ld.volatile.global.u32 %gpuslice_r9, [%gpuslice_d0+@EXTRA];
  ld.volatile.global.u32 %gpuslice_r7, [%gpuslice_d0+@TASK_NS];
)";

inline constexpr std::string_view kComplete = R"(
$gpuslice_all_left:
  add.u32 %gpuslice_r5, %gpuslice_r3, %gpuslice_r9;
  setp.ne.u32 %gpuslice_p, %gpuslice_r4, %gpuslice_r5;
  @%gpuslice_p bra $gpuslice_await;
  setp.ne.u32 %gpuslice_p, %gpuslice_r9, 0;
  @%gpuslice_p fence.acq_rel.sys;
  mov.u64 %gpuslice_d2, %globaltimer;
  st.volatile.global.u64 [%gpuslice_d4+@DONE_NS], %gpuslice_d2;
  ld.param.u32 %gpuslice_r3, [@TOTAL];
  st.volatile.global.v4.u32 [%gpuslice_d4+@HOST_LEFT], {%gpuslice_r4, %gpuslice_r3, %gpuslice_r7, %gpuslice_r9};
  mov.u32 %gpuslice_r2, 1;
  st.volatile.global.v2.u32 [%gpuslice_d4+@STARTED], {%gpuslice_r2, %gpuslice_r2};
$gpuslice_return:
  ret;
)";

}  // namespace gpuctl::ptx::pass
