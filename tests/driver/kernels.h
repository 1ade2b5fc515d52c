// The kernels of the programs beside this file.
#pragma once

/// scramble(out, seed, iterations): each thread puts its number through `iterations` steps of scrambled(), below.
inline constexpr char kScramblePtx[] = R"(.version 6.4
.target sm_75
.address_size 64
.visible .entry scramble(.param .u64 out_param, .param .u32 seed_param, .param .u32 iterations_param)
{
  .reg .pred %p;
  .reg .u32 %r<8>;
  .reg .u64 %rd<4>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  ld.param.u32 %r5, [seed_param];
  add.u32 %r5, %r5, %r4;
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
  ld.param.u64 %rd1, [out_param];
  cvta.to.global.u64 %rd1, %rd1;
  mul.wide.u32 %rd2, %r4, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r5;
  ret;
}
)";

/// What one thread of scramble writes: `value` is seed + the thread's number in the grid.
inline unsigned scrambled(unsigned value, unsigned iterations) {
  for (; iterations > 0; --iterations) {
    value = value * 1664525u + 1013904223u;
    value ^= value >> 15;
  }
  return value;
}

/// What record writes for each block.
struct Record {
  unsigned long long start_ns;  ///< %globaltimer
  unsigned sm;                  ///< %smid
  unsigned runs;                ///< how often the block ran: counted, so that a block that runs twice is seen
};

/// wait_for(word): waits until *word is not 0.
inline constexpr char kWaitForPtx[] = R"(.version 6.4
.target sm_75
.address_size 64
.visible .entry wait_for(.param .u64 word_param)
{
  .reg .pred %p;
  .reg .u32 %r1;
  .reg .u64 %rd1;
  ld.param.u64 %rd1, [word_param];
  cvta.to.global.u64 %rd1, %rd1;
AGAIN:
  ld.volatile.global.u32 %r1, [%rd1];
  setp.eq.u32 %p, %r1, 0;
  @%p bra AGAIN;
  ret;
}
)";

/// record(records, over, iterations): each block notes when and where it runs, then is busy for `iterations` steps, or
/// not at all once *over is not 0: so a grid as large as wanted can be ended. The notes may be copied while it runs.
inline constexpr char kRecordPtx[] = R"(.version 6.4
.target sm_75
.address_size 64
.visible .entry record(.param .u64 records_param, .param .u64 over_param, .param .u32 iterations_param)
{
  .reg .pred %p<5>;
  .reg .u32 %r<8>;
  .reg .u64 %rd<6>;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra NOTED;
  ld.param.u64 %rd1, [records_param];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r2, %ctaid.x;
  mul.wide.u32 %rd2, %r2, 16;
  add.u64 %rd1, %rd1, %rd2;
  mov.u64 %rd3, %globaltimer;
  st.volatile.global.u64 [%rd1], %rd3;
  mov.u32 %r3, %smid;
  st.volatile.global.u32 [%rd1+8], %r3;
  atom.global.add.u32 %r4, [%rd1+12], 1;
NOTED:
  ld.param.u64 %rd4, [over_param];
  cvta.to.global.u64 %rd4, %rd4;
  ld.volatile.global.u32 %r5, [%rd4];
  setp.ne.u32 %p2, %r5, 0;
  @%p2 bra END;
  ld.param.u32 %r6, [iterations_param];
STEP:
  setp.eq.u32 %p3, %r6, 0;
  @%p3 bra END;
  sub.u32 %r6, %r6, 1;
  bra STEP;
END:
  ret;
}
)";
