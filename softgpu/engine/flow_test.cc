// Divergence, loops, barriers and waiting lanes.
#include <atomic>
#include <thread>

#include "softgpu/engine/testing.h"

namespace gpuctl::softgpu::engine {
namespace {

using testing::compile;
using testing::kernel;
using testing::launch;
using testing::run;
using testing::Shape;

TEST(Flow, DivergentLoopsAndBranches) {
  // Collatz steps: each lane loops a different number of times.
  const auto out = run(R"(
  add.u32 %r1, %x, 1;
  mov.u32 %d, 0;
$LOOP:
  setp.eq.u32 %p1, %r1, 1;
  @%p1 bra $DONE;
  and.b32 %r2, %r1, 1;
  setp.eq.u32 %p2, %r2, 0;
  @%p2 bra $EVEN;
  mad.lo.u32 %r1, %r1, 3, 1;
  bra.uni $NEXT;
$EVEN:
  shr.u32 %r1, %r1, 1;
$NEXT:
  add.u32 %d, %d, 1;
  bra.uni $LOOP;
$DONE:)",
                       200);
  for (std::uint32_t i = 0; i < 200; ++i) {
    std::uint32_t steps = 0;
    for (std::uint64_t v = i + 1; v != 1; ++steps) v = v % 2 == 0 ? v / 2 : 3 * v + 1;
    EXPECT_EQ(steps, out[i]) << i;
  }
}

TEST(Flow, LanesMeetAgainBehindABranch) {
  const auto program = kernel(R"(
  setp.lt.u32 %p1, %x, 10;
  @%p1 bra $A;
  mov.u32 %d, 1;
  bra.uni $JOIN;
$A:
  mov.u32 %d, 2;
$JOIN:
  activemask.b32 %r1;
  setp.eq.u32 %p2, %r1, -1;
  @!%p2 mov.u32 %d, 99;)");
  ASSERT_NE(nullptr, program);
  std::vector<std::uint32_t> out(32);
  ASSERT_EQ("", launch(*program, "k", Shape{}, out.data()));
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(i < 10 ? 2u : 1u, out[i]);
}

TEST(Flow, BranchTable) {
  const auto out = run(R"(
  and.b32 %r1, %x, 3;
  $TS: .branchtargets $L0, $L1, $L2, $L0;
  brx.idx %r1, $TS;
$L0:
  mov.u32 %d, 100;
  bra.uni $END;
$L1:
  mov.u32 %d, 101;
  bra.uni $END;
$L2:
  mov.u32 %d, 102;
$END:)",
                       64);
  const std::uint32_t want[] = {100, 101, 102, 100};
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(want[i & 3], out[i]);
}

TEST(Flow, VectorRegisters) {
  const auto out = run(R"(
  .reg .v4 .u32 %v, %w;
  mov.v4.u32 %v, %tid;
  mov.v4.u32 %w, %v;
  add.u32 %w.y, %w.x, 5;
  mad.lo.u32 %d, %w.y, 100, %v.w;)",
                       64);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ((i + 5) * 100, out[i]);
}

TEST(Flow, SpecialRegisters) {
  const auto program = compile(R"(.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<16>;
  .reg .b64 %o, %q;
  ld.param.u64 %o, [out];
  mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z;
  mov.u32 %r3, %ntid.x; mov.u32 %r4, %ntid.y;
  mad.lo.u32 %r5, %r2, %r4, %r1;
  mad.lo.u32 %r5, %r5, %r3, %r0;
  mov.u32 %r6, %ctaid.y; mov.u32 %r7, %nctaid.x; mov.u32 %r8, %ctaid.x;
  mad.lo.u32 %r6, %r6, %r7, %r8;
  mov.u32 %r9, %ntid.z;
  mul.lo.u32 %r10, %r3, %r4; mul.lo.u32 %r10, %r10, %r9;
  mad.lo.u32 %r5, %r6, %r10, %r5;
  mul.wide.u32 %q, %r5, 16;
  add.u64 %o, %o, %q;
  mov.u32 %r11, %laneid; mov.u32 %r12, %warpid; mov.u32 %r13, %lanemask_lt; mov.u32 %r14, %nwarpid;
  st.global.v4.u32 [%o], {%r11, %r12, %r13, %r14};
  ret;
}
)");
  ASSERT_NE(nullptr, program);
  Shape shape;
  shape.grid = {2, 3, 1};
  shape.block = {5, 4, 3};
  std::vector<std::uint32_t> out(4 * 60 * 6);
  ASSERT_EQ("", launch(*program, "k", shape, out.data()));
  for (std::uint32_t i = 0; i < 360; ++i) {
    const std::uint32_t lane = i % 60 % 32;
    EXPECT_EQ(lane, out[4 * i]);
    EXPECT_EQ(i % 60 / 32, out[4 * i + 1]);
    EXPECT_EQ((1u << lane) - 1, out[4 * i + 2]);
    EXPECT_EQ(2u, out[4 * i + 3]);
  }
}

TEST(Barrier, EarlyReturnsDoNotBlockTheOthers) {
  // Threads 40 and above leave; the others rotate values through shared memory twice.
  const auto out = run(R"(
  setp.ge.u32 %p1, %x, 40;
  mov.u32 %d, 7;
  @%p1 bra $OUT;
  shl.b32 %r1, %x, 2;
  mov.u32 %r2, s;
  add.u32 %r3, %r2, %r1;
  st.shared.u32 [%r3], %x;
  bar.sync 0;
  add.u32 %r4, %x, 1;
  rem.u32 %r4, %r4, 40;
  shl.b32 %r4, %r4, 2;
  add.u32 %r4, %r2, %r4;
  ld.shared.u32 %r5, [%r4];
  bar.sync 0;
  st.shared.u32 [%r3], %r5;
  bar.sync 0;
  ld.shared.u32 %d, [%r4];
$OUT:)",
                       128);
  for (std::uint32_t i = 0; i < 128; ++i) EXPECT_EQ(i < 40 ? (i + 2) % 40 : 7, out[i]) << i;
}

TEST(Barrier, FinishedThreadsTakePartUntilAllAre) {
  // Thread i works i rounds, each with a barrier. Finished threads loop at the same barrier instruction.
  const auto out = run(R"(
  mov.u32 %d, 0;
$WORK:
  setp.ge.u32 %p1, %d, %x;
  @%p1 bra $FINISHED;
  barrier.red.popc.u32 %r1, 1, 0;
  add.u32 %d, %d, 1;
  bra.uni $WORK;
$FINISHED:
  setp.eq.u32 %p2, %x, %x;
  barrier.red.popc.u32 %r2, 1, %p2;
  mov.u32 %r3, %ntid.x;
  setp.lt.u32 %p3, %r2, %r3;
  @%p3 bra $FINISHED;
  mov.u32 %r5, %ntid.x;
  mad.lo.u32 %d, %d, 1000, %r2;)",
                       96);
  for (std::uint32_t i = 0; i < 96; ++i) EXPECT_EQ(i * 1000 + 96, out[i]);
}

TEST(Barrier, NamedCountedAndReductions) {
  // Warps 0 and 1 use barrier 3 with 64 threads while warps 2 and 3 use barrier 4; then all reduce.
  const auto out = run(R"(
  setp.lt.u32 %p1, %x, 64;
  shl.b32 %r1, %x, 2;
  mov.u32 %r2, s;
  add.u32 %r3, %r2, %r1;
  st.shared.u32 [%r3], %x;
  @%p1 bar.sync 3, 64;
  @!%p1 barrier.sync 4, 64;
  xor.b32 %r4, %r1, 128;
  add.u32 %r4, %r4, %r2;
  ld.shared.u32 %d, [%r4];
  setp.lt.u32 %p2, %x, 100;
  bar.red.and.pred %p3, 0, %p2;
  bar.red.or.pred %p4, 0, !%p2;
  bar.red.popc.u32 %r5, 0, !%p2;
  @%p3 add.u32 %d, %d, 1000;
  @%p4 add.u32 %d, %d, 2000;
  mad.lo.u32 %d, %r5, 10000, %d;)",
                       128);
  for (std::uint32_t i = 0; i < 128; ++i) EXPECT_EQ((i ^ 32) + 2000 + 28 * 10000, out[i]);
}

TEST(Barrier, ProducersArriveWithoutWaiting) {
  const auto out = run(R"(
  setp.lt.u32 %p1, %x, 32;
  mov.u32 %d, 0;
  @%p1 bra $CONSUME;
  mov.u32 %r1, s;
  add.u32 %r2, %x, 100;
  shl.b32 %r3, %x, 2;
  add.u32 %r1, %r1, %r3;
  st.shared.u32 [%r1], %r2;
  bar.arrive 1, 64;
  bra.uni $END;
$CONSUME:
  bar.sync 1, 64;
  mov.u32 %r1, s;
  shl.b32 %r3, %x, 2;
  add.u32 %r1, %r1, %r3;
  ld.shared.u32 %d, [%r1+128];
$END:)",
                       64);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(i < 32 ? i + 132 : 0, out[i]);
}

TEST(Barrier, ADeadlockIsAnError) {
  const auto program = kernel("  setp.lt.u32 %p1, %x, 32;\n  @%p1 bar.sync 1, 96;\n  mov.u32 %d, 1;");
  ASSERT_NE(nullptr, program);
  std::vector<std::uint32_t> out(64);
  Shape shape;
  shape.block.x = 64;
  // 32 arrive at a barrier of 96 threads in a block of 64: the engine treats it as one of the whole block.
  EXPECT_EQ("", launch(*program, "k", shape, out.data()));
  shape.block.x = 128;
  out.resize(128);
  EXPECT_NE(std::string::npos, launch(*program, "k", shape, out.data()).find("wait for each other"));
}

TEST(Flow, SpinningLanesDoNotStarveTheOneTheyWaitFor) {
  // All lanes of a warp and of other warps take a lock in turn; lanes spin at a lower address than the holder's work.
  const auto out = run(R"(
  mov.u32 %r1, s;
  setp.eq.u32 %p1, %x, 0;
  @%p1 st.shared.u32 [%r1], 0;
  @%p1 st.shared.u32 [%r1+4], 0;
  bar.sync 0;
$TRY:
  atom.shared.cas.b32 %r2, [%r1], 0, 1;
  setp.ne.u32 %p2, %r2, 0;
  @%p2 bra $TRY;
  ld.volatile.shared.u32 %d, [%r1+4];
  add.u32 %r3, %d, 1;
  st.volatile.shared.u32 [%r1+4], %r3;
  membar.cta;
  atom.shared.exch.b32 %r4, [%r1], 0;)",
                       96);
  std::vector<bool> seen(96);
  for (const std::uint32_t ticket : out) {
    ASSERT_LT(ticket, 96u);
    EXPECT_FALSE(seen[ticket]);
    seen[ticket] = true;
  }
}

TEST(Flow, WarpsWaitForOtherWarpsThroughMemory) {
  const auto out = run(R"(
  mov.u32 %r1, s;
  setp.eq.u32 %p1, %x, 0;
  @%p1 st.shared.u32 [%r1], 0;
  bar.sync 0;
  setp.ge.u32 %p2, %x, 32;
  @%p2 bra $WRITE;
$SPIN:
  ld.volatile.shared.u32 %d, [%r1];
  setp.eq.u32 %p3, %d, 0;
  @%p3 bra $SPIN;
  bra.uni $END;
$WRITE:
  mov.u32 %d, 42;
  st.volatile.shared.u32 [%r1], %d;
$END:)",
                       64);
  for (const std::uint32_t value : out) EXPECT_EQ(42u, value);
}

TEST(Time, SleepTakesRealTimeAndOtherWarpsGoOn) {
  // Warp 0 sleeps 20 ms. Meanwhile warp 1 counts how long it can run, and stores the clock when it is done.
  std::vector<std::uint64_t> out(64);
  const auto program = compile(R"(.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .pred %p;
  .reg .b32 %x;
  .reg .b64 %o, %a, %b;
  ld.param.u64 %o, [out];
  mov.u32 %x, %tid.x;
  mul.wide.u32 %a, %x, 8;
  add.u64 %o, %o, %a;
  mov.u64 %a, %globaltimer;
  setp.lt.u32 %p, %x, 32;
  @%p nanosleep.u32 20000000;
  mov.u64 %b, %globaltimer;
  sub.u64 %b, %b, %a;
  st.global.u64 [%o], %b;
  ret;
}
)");
  ASSERT_NE(nullptr, program);
  Shape shape;
  shape.block.x = 64;
  ASSERT_EQ("", launch(*program, "k", shape, out.data()));
  for (std::size_t i = 0; i < 32; ++i) EXPECT_GE(out[i], 20000000u);
  for (std::size_t i = 32; i < 64; ++i) EXPECT_LT(out[i], 20000000u);
}

TEST(Time, AnAbortEndsASpinningBlock) {
  const auto program = kernel("$L:\n  bra.uni $L;\n  mov.u32 %d, 0;");
  ASSERT_NE(nullptr, program);
  std::atomic<bool> abort{false};
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    abort = true;
  });
  std::vector<std::uint32_t> out(32);
  Shape shape;
  shape.abort = &abort;
  EXPECT_NE(std::string::npos, launch(*program, "k", shape, out.data()).find("aborted"));
  other.join();
}

}  // namespace
}  // namespace gpuctl::softgpu::engine
