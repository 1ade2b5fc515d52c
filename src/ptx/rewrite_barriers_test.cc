// What rewriting does about barriers, early returns and whole warps.
#include <gtest/gtest.h>

#include "ptx/testing/report.h"

namespace gpuctl::ptx {
namespace {

/// "joined", "plain", or the reason why the entry is opaque.
std::string barrier_form(const std::string& body, const std::string& before = "") {
  const EntryReport report = report_on(body, before);
  if (report.form == Form::kOpaque) return report.reason;
  return report.needs_finished_barrier ? "joined" : "plain";
}

TEST(Rewrite, JoinsBarriersOnlyWhereThreadsMayReturnBeforeThem) {
  const std::string tid = "mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; setp.ge.u32 %p1, %r1, %r2; ";
  const std::string uniform = "mov.u32 %r1, %ctaid.x; ld.param.u32 %r2, [n]; setp.ge.u32 %p1, %r1, %r2; ";
  EXPECT_EQ(barrier_form(tid + "@%p1 ret; bar.sync 0; ret;"), "joined");
  EXPECT_EQ(barrier_form(uniform + "@%p1 ret; bar.sync 0; ret;"), "plain");
  EXPECT_EQ(barrier_form(tid + "@%p1 bra e; bar.sync 0; e: ret;"), "joined");
  EXPECT_EQ(barrier_form(tid + "bar.sync 0; @%p1 bra e; st.shared.u32 [s], %r1; e: ret;"), "plain");
  EXPECT_EQ(barrier_form(tid + "@%p1 bra e; st.shared.u32 [s], %r1; e: bar.sync 0; ret;"), "plain");
  EXPECT_EQ(barrier_form(tid + "@!%p1 bar.sync 0; ret;"), "joined");
  // Through control: diverged threads set a register differently.
  EXPECT_EQ(
      barrier_form(
          tid + "mov.u32 %r3, 0; @%p1 bra m; mov.u32 %r3, 1; m: setp.eq.u32 %p2, %r3, 0; @%p2 ret; bar.sync 0; ret;"),
      "joined");
  // A value loaded from memory may differ; a block-wide reduction may not.
  EXPECT_EQ(barrier_form("ld.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 ret; bar.sync 0; ret;"), "joined");
  EXPECT_EQ(barrier_form(tid + "l: bar.red.or.pred %p2, 0, %p1; @%p2 bra l; ret;"), "plain");
  // In and through called functions.
  EXPECT_EQ(barrier_form(tid + "@%p1 ret; call f; ret;", ".func f { bar.sync 0; ret; }"), "joined");
  EXPECT_EQ(barrier_form("call f, (%r1); ret;",
                         ".func f (.reg .u32 a) { .reg .pred p; setp.eq.u32 p, a, 0; @p ret; bar.sync 0; ret; }"),
            "joined");
  // A trap ends the whole grid, so nothing needs to be correct after it.
  EXPECT_EQ(barrier_form(tid + "@!%p1 bra o; trap; o: bar.sync 0; ret;"), "plain");
  EXPECT_EQ(barrier_form(tid + "t: .branchtargets a, b; brx.idx %r1, t; a: ret; b: bar.sync 0; ret;"), "joined");
}

TEST(Rewrite, TakesTheShortcutOnlyWhenThreadsComeToAllBarriersOrNone) {
  const std::string early = "mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 5; ";
  const auto shortcut = [&](const std::string& body, const std::string& before = "") {
    const EntryReport report = report_on(body, before);
    EXPECT_TRUE(report.needs_finished_barrier) << body << report.reason;
    return report.returns_only_first;
  };
  EXPECT_TRUE(shortcut(early + "@%p1 ret; bar.sync 0; bar.sync 0; ret;"));
  EXPECT_TRUE(shortcut(early + "@%p1 ret; ld.param.u32 %r2, [n]; l: bar.sync 0; sub.u32 %r2, %r2, 1; setp.ne.u32 %p2, "
                               "%r2, 0; @%p2 bra l; ret;"));
  EXPECT_FALSE(shortcut(early + "bar.sync 0; @%p1 ret; bar.sync 0; ret;"));  // after a barrier
  // some come to two, some to one
  EXPECT_FALSE(shortcut(early + "@%p1 bra m; bar.sync 0; m: bar.sync 0; ret;"));
  EXPECT_FALSE(shortcut(early + "l: bar.sync 0; add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 9; @%p2 bra l; ret;"));
  EXPECT_FALSE(shortcut(early + "@%p1 bar.sync 0; ret;"));
  EXPECT_FALSE(shortcut(early + "@%p1 ret; call f; ret;", ".func f { bar.sync 0; ret; }"));
}

TEST(Rewrite, RefusesEarlyReturnItCannotJoin) {
  const std::string early = "mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 5; @%p1 ret; ";
  const std::string barriers = "threads may return before barriers that are named, counted or reducing";
  EXPECT_EQ(barrier_form(early + "bar.sync 1; ret;"), barriers);
  EXPECT_EQ(barrier_form(early + "bar.sync 0; bar.sync 2, 64; ret;"), barriers);
  EXPECT_EQ(barrier_form(early + "bar.red.popc.u32 %r2, 0, %p1; ret;"), barriers);
  EXPECT_EQ(barrier_form(early + "bar.sync 2, 64; ret;"), "plain");  // a count ignores returned threads
  const std::string lanes =
      "a lane may return before a warp-level instruction that could wait for it (shfl.sync and the like)";
  EXPECT_EQ(barrier_form(early + "shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; ret;"), lanes);
  EXPECT_EQ(barrier_form(early + "bar.warp.sync -1; ret;"), lanes);
  EXPECT_EQ(barrier_form(early + "call f; ret;", ".func f { .reg .pred p; vote.sync.any.pred p, p, -1; ret; }"), lanes);
  EXPECT_EQ(barrier_form("mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 5; @%p1 bra m; st.shared.u32 [s], %r1; m: "
                         "bar.warp.sync -1; ret;"),
            "plain");
  // All returns are merged into one. The threads that return are told apart by a number, not by their lanes.
  EXPECT_EQ(
      barrier_form(
          "mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 8; @%p1 bra e; shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; e: ret;"),
      lanes);
  EXPECT_EQ(
      barrier_form(
          "mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 8; @%p1 bra e; shfl.sync.bfly.b32 %r2, %r1, 1, 31, 255; e: ret;"),
      "plain");
  EXPECT_EQ(barrier_form("mov.u32 %r3, 255; mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 7; @%p1 bra e; "
                         "shfl.sync.bfly.b32 %r2, %r1, 1, 31, %r3; e: ret;"),
            "plain");
  EXPECT_EQ(
      barrier_form(
          "mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 6; @%p1 bra e; shfl.sync.bfly.b32 %r2, %r1, 1, 31, 255; e: ret;"),
      lanes);
}

TEST(Rewrite, KnowsThatLanesAgreeOnAVoteAndWarpsDoNot) {
  const std::string lanes =
      "a lane may return before a warp-level instruction that could wait for it (shfl.sync and the like)";
  const std::string own = "mov.u32 %r1, %tid.x; ld.global.u32 %r2, [%rd1]; setp.eq.u32 %p1, %r1, %r2; ";
  const std::string loop =
      " l: setp.eq.u32 %p2, %r3, 0; @%p2 bra e; shfl.sync.bfly.b32 %r4, %r1, 1, 31, -1; add.u32 %r5, %r3, -1; "
      "and.b32 %r3, %r3, %r5; bra l; e: ret;";
  const auto form = [&](const std::string& vote) {
    const EntryReport report = report_on(own + vote + loop);
    return report.form == Form::kOpaque ? report.reason : report.needs_whole_warps ? "whole warps" : "any";
  };
  EXPECT_EQ(form("vote.sync.ballot.b32 %r3, %p1, -1;"), "any");
  EXPECT_EQ(form("mov.u32 %r6, 0xffffffff; vote.sync.ballot.b32 %r3, %p1, %r6;"), "any");
  EXPECT_EQ(form("vote.sync.any.pred %p3, %p1, -1; selp.b32 %r3, 7, 0, %p3;"), "any");
  // Not all lanes take part, or it is not known whether they do.
  EXPECT_EQ(form("vote.sync.ballot.b32 %r3, %p1, 0x7fffffff;"), lanes);
  EXPECT_EQ(form("mov.u32 %r6, -1; add.u32 %r6, %r6, %r6; vote.sync.ballot.b32 %r3, %p1, %r6;"), lanes);
  EXPECT_EQ(form("activemask.b32 %r6; vote.sync.ballot.b32 %r3, %p1, %r6;"), lanes);
  EXPECT_EQ(form("vote.ballot.b32 %r3, %p1;"), lanes);
  EXPECT_EQ(form("match.any.sync.b32 %r3, %r2, -1;"), lanes);
  // Lanes go on with something of their own.
  EXPECT_EQ(form("vote.sync.ballot.b32 %r3, %p1, -1; add.u32 %r3, %r3, %r1;"), lanes);
  EXPECT_EQ(form("mov.u32 %r3, 0; @%p1 bra m; vote.sync.ballot.b32 %r3, %p1, -1; m:"), lanes);
  EXPECT_EQ(form("@%p1 ret; vote.sync.ballot.b32 %r3, %p1, -1;"), lanes);
  // What one warp agreed on is not what another one did.
  const std::string vote = own + "vote.sync.any.pred %p2, %p1, -1; @%p2 bra e; ";
  EXPECT_EQ(barrier_form(vote + "bar.sync 0; e: ret;"), "joined");
  EXPECT_EQ(barrier_form(vote + "bar.sync 1; e: ret;"),
            "threads may return before barriers that are named, counted or reducing");
}

TEST(Rewrite, TakesAValueThatLanesComputedUnequallyOftenForDifferent) {
  const auto form = [](const std::string& apart) {
    const EntryReport report = report_on(
        "ld.global.u32 %r2, [%rd1]; ld.param.u32 %r8, [n]; mov.u32 %r3, 0; setp.lt.u32 %p1, %r2, %r8; " + apart +
        " shr.u32 %r4, %r3, 1; m: add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, %r8; @%p2 bra l; setp.eq.u32 %p3, %r4, 5; "
        "@%p3 bra e; shfl.sync.bfly.b32 %r5, %r2, 1, 31, -1; e: ret;");
    return report.form == Form::kOpaque ? "opaque" : report.needs_whole_warps ? "whole warps" : "any";
  };
  EXPECT_STREQ(form("l:"), "any");
  EXPECT_STREQ(form("l: setp.ge.u32 %p4, %r3, %r2; @%p4 bra m;"), "opaque");
  EXPECT_STREQ(form("@%p1 bra m; l:"), "opaque");
}

TEST(Rewrite, KnowsARegisterOfAnInnerScopeFromItsNamesake) {
  const auto form = [](const std::string& again) {
    return barrier_form(
        "mov.u32 %r1, %tid.x; setp.eq.u32 %p2, %r1, 3; @%p2 st.shared.u32 [s], %r1; l: "
        "{ .reg .pred %p1, %p2; setp.eq.u32 %p1, %r1, 5; bar.red.or.pred %p2, 0, %p1; "
        "selp.u32 %r2, 1, 0, %p2; } setp.ne.u32 %p3, %r2, 0; " +
        again + " bra l; ret;");
  };
  EXPECT_EQ(form("@%p3"), "plain");
  EXPECT_EQ(form("@%p2"), "threads may return before barriers that are named, counted or reducing");
}

TEST(Rewrite, TellsWhatOnlyBlocksOfWholeWarpsMayBe) {
  const auto whole_warps = [](const std::string& number) {
    const EntryReport report = report_on(
        "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3; " + number +
        " ld.param.u32 %r8, [n]; setp.ge.u32 %p1, %r9, %r8; @%p1 bra e; "
        "shfl.sync.bfly.b32 %r10, %r1, 1, 31, -1; st.global.u32 [%rd1], %r10; e: ret;");
    return report.form == Form::kOpaque ? "opaque" : report.needs_whole_warps ? "whole warps" : "any";
  };
  EXPECT_STREQ(whole_warps("shr.u32 %r9, %r4, 5;"), "whole warps");
  EXPECT_STREQ(whole_warps("shr.s32 %r5, %r4, 31; shr.u32 %r6, %r5, 27; add.s32 %r7, %r4, %r6; shr.s32 %r9, %r7, 5;"),
               "whole warps");
  EXPECT_STREQ(whole_warps("div.u32 %r9, %r4, 96; add.s32 %r9, %r9, 1;"), "opaque");  // written twice
  EXPECT_STREQ(whole_warps("div.u32 %r5, %r4, 96; mul.lo.s32 %r9, %r5, 7;"), "whole warps");
  EXPECT_STREQ(whole_warps("add.s32 %r9, %r9, %r4;"), "opaque");  // from itself
  EXPECT_STREQ(whole_warps("shr.u32 %r9, %r4, 4;"), "opaque");
  EXPECT_STREQ(whole_warps("add.s32 %r5, %r4, 1; shr.u32 %r9, %r5, 5;"), "opaque");
  EXPECT_STREQ(whole_warps("mov.u32 %r9, %r1;"), "any");
}

}  // namespace
}  // namespace gpuctl::ptx
