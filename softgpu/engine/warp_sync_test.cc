// Operations among the lanes of a warp.
#include "softgpu/engine/testing.h"

namespace gpuctl::softgpu::engine {
namespace {

using testing::kernel;
using testing::run;

TEST(WarpSync, Shuffles) {
  struct Row {
    const char* mode;
    std::uint32_t b, c;
  };
  const Row rows[] = {{"up", 3, 0},       {"down", 5, 31},     {"bfly", 9, 31},  {"idx", 7, 31},
                      {"idx", 2, 0x181f}, {"down", 1, 0x1c1f}, {"up", 1, 0x1800}};
  for (const Row& row : rows) {
    const std::string b = std::to_string(row.b), c = std::to_string(row.c);
    const auto out = run(std::string("  mul.lo.u32 %r1, %x, 10;\n  shfl.sync.") + row.mode + ".b32 %d|%p1, %r1, " + b +
                             ", " + c + ", -1;\n  @%p1 add.u32 %d, %d, 1;",
                         32);
    for (int lane = 0; lane < 32; ++lane) {
      const int clamp = row.c & 31, segment = row.c >> 8 & 31, bv = static_cast<int>(row.b);
      const int greatest = (lane & segment) | (clamp & ~segment), least = lane & segment;
      int from = 0;
      bool valid = false;
      const std::string mode = row.mode;
      if (mode == "up") from = lane - bv, valid = from >= greatest;
      if (mode == "down") from = lane + bv, valid = from <= greatest;
      if (mode == "bfly") from = lane ^ bv, valid = from <= greatest;
      if (mode == "idx") from = least | (bv & ~segment), valid = from <= greatest;
      if (!valid) from = lane;
      EXPECT_EQ(static_cast<std::uint32_t>(from * 10 + valid), out[static_cast<std::size_t>(lane)])
          << row.mode << " lane " << lane;
    }
  }
}

TEST(WarpSync, DivergedLanesMeetAtDifferentInstructions) {
  const auto out = run(R"(
  setp.lt.u32 %p1, %x, 16;
  @%p1 bra $LOW;
  add.u32 %r1, %x, 100;
  shfl.sync.bfly.b32 %d, %r1, 16, 31, -1;
  bra.uni $END;
$LOW:
  add.u32 %r2, %x, 200;
  shfl.sync.bfly.b32 %d, %r2, 16, 31, -1;
$END:)",
                       32);
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(i < 16 ? i + 116 : i - 16 + 200, out[i]);
}

TEST(WarpSync, VotesMatchesReductions) {
  const auto out = run(R"(
  setp.lt.u32 %p1, %x, 5;
  vote.sync.ballot.b32 %d, %p1, -1;
  vote.sync.all.pred %p2, %p1, -1;
  vote.sync.any.pred %p3, %p1, -1;
  vote.sync.uni.pred %p4, !%p1, -1;
  @%p2 add.u32 %d, %d, 1000;
  @%p3 add.u32 %d, %d, 2000;
  @%p4 add.u32 %d, %d, 4000;
  redux.sync.add.u32 %r1, %x, -1;
  add.u32 %d, %d, %r1;
  sub.u32 %r2, %x, 7;
  redux.sync.min.s32 %r3, %r2, -1;
  add.u32 %d, %d, %r3;
  and.b32 %r4, %x, 3;
  match.any.sync.b32 %r5, %r4, -1;
  popc.b32 %r6, %r5;
  mad.lo.u32 %d, %r6, 100000, %d;
  match.all.sync.b32 %r7|%p5, %r4, -1;
  @!%p5 add.u32 %d, %d, 1000000;
  elect.sync %r8|%p6, -1;
  @%p6 add.u32 %d, %d, 10000000;)",
                       32);
  for (std::uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(31 + 2000 + 496 - 7 + 800000 + 1000000 + (i == 0 ? 10000000u : 0u), out[i]);
}

TEST(WarpSync, ExitedLanesAreNotWaitedFor) {
  const auto out = run(R"(
  setp.ge.u32 %p1, %x, 20;
  @%p1 ret;
  bar.warp.sync -1;
  redux.sync.or.b32 %d, 1, -1;
  vote.sync.ballot.b32 %r1, 1, -1;
  popc.b32 %r1, %r1;
  add.u32 %d, %d, %r1;)",
                       32);
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(i < 20 ? 21u : 0xdeadbeefu, out[i]);
}

}  // namespace
}  // namespace gpuctl::softgpu::engine
