// The kernels of graph_storm.cc: what they leave depends on what was there, so each must run once, in its turn.
#pragma once

#include "kernels.h"

/// In each entry, thread by thread, with `value` at data[number of the thread in the grid]:
/// step(data, add, iterations): value = scrambled(value + add, iterations).
/// combine(data, other): value = value * 31 + other[number].
/// wait_and_step(data, add, iterations, flag): as step, once *flag is not 0. Its blocks could be waiting for each
/// other, so it has no other form than its own.
inline constexpr char kGraphPtx[] = R"(.version 6.4
.target sm_75
.address_size 64
.visible .entry step(.param .u64 data_param, .param .u32 add_param, .param .u32 iterations_param)
{
  .reg .pred %p;
  .reg .u32 %r<8>;
  .reg .u64 %rd<4>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  ld.param.u64 %rd1, [data_param];
  cvta.to.global.u64 %rd1, %rd1;
  mul.wide.u32 %rd2, %r4, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r5, [%rd3];
  ld.param.u32 %r6, [add_param];
  add.u32 %r5, %r5, %r6;
  ld.param.u32 %r6, [iterations_param];
STEP:
  setp.eq.u32 %p, %r6, 0;
  @%p bra END;
  mad.lo.u32 %r5, %r5, 1664525, 1013904223;
  shr.u32 %r7, %r5, 15;
  xor.b32 %r5, %r5, %r7;
  sub.u32 %r6, %r6, 1;
  bra STEP;
END:
  st.global.u32 [%rd3], %r5;
  ret;
}
.visible .entry combine(.param .u64 data_param, .param .u64 other_param)
{
  .reg .u32 %r<8>;
  .reg .u64 %rd<6>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %rd1, %r4, 4;
  ld.param.u64 %rd2, [data_param];
  cvta.to.global.u64 %rd2, %rd2;
  add.u64 %rd2, %rd2, %rd1;
  ld.param.u64 %rd3, [other_param];
  cvta.to.global.u64 %rd3, %rd3;
  add.u64 %rd3, %rd3, %rd1;
  ld.global.u32 %r5, [%rd2];
  ld.global.u32 %r6, [%rd3];
  mad.lo.u32 %r5, %r5, 31, %r6;
  st.global.u32 [%rd2], %r5;
  ret;
}
.visible .entry wait_and_step(.param .u64 data_param, .param .u32 add_param, .param .u32 iterations_param,
                              .param .u64 flag_param)
{
  .reg .pred %p;
  .reg .u32 %r<8>;
  .reg .u64 %rd<6>;
  ld.param.u64 %rd4, [flag_param];
  cvta.to.global.u64 %rd4, %rd4;
WAIT:
  ld.volatile.global.u32 %r1, [%rd4];
  setp.eq.u32 %p, %r1, 0;
  @%p bra WAIT;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  ld.param.u64 %rd1, [data_param];
  cvta.to.global.u64 %rd1, %rd1;
  mul.wide.u32 %rd2, %r4, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r5, [%rd3];
  ld.param.u32 %r6, [add_param];
  add.u32 %r5, %r5, %r6;
  ld.param.u32 %r6, [iterations_param];
STEP:
  setp.eq.u32 %p, %r6, 0;
  @%p bra END;
  mad.lo.u32 %r5, %r5, 1664525, 1013904223;
  shr.u32 %r7, %r5, 15;
  xor.b32 %r5, %r5, %r7;
  sub.u32 %r6, %r6, 1;
  bra STEP;
END:
  st.global.u32 [%rd3], %r5;
  ret;
}
)";
