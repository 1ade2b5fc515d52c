// The worker's text (wrap_in_claim_loop.cc) when it leaves.
#pragma once

#include <string_view>

namespace gpuctl::ptx::pass {

// r1 the SM it started on, r3 whether it posted, r4 left, r5 workers + extra, r6 what it was about; d0 slot, d4 host.
inline constexpr std::string_view kLeave = R"(
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
  ld.volatile.global.u32 %gpuslice_r5, [%gpuslice_d0+@TASK_NS];
  st.volatile.global.v4.u32 [%gpuslice_d4+@HOST_LEFT], {%gpuslice_r2, %gpuslice_r3, %gpuslice_r5, %gpuslice_r5};
  st.volatile.global.v2.u32 [%gpuslice_d4+@STARTED], {%gpuslice_r4, %gpuslice_r4};
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

}  // namespace gpuctl::ptx::pass
