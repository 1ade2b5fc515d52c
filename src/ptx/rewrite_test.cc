#include "ptx/rewrite.h"

#include <gtest/gtest.h>

#include "ptx/analysis/flow.h"
#include "ptx/lexical/lexer.h"
#include "ptx/pass/refuse_waiting_blocks.h"
#include "ptx/persistent_abi.h"
#include "ptx/syntax/parser.h"
#include "ptx/syntax/printer.h"
#include "ptx/testing/report.h"
#include "ptx/testing/test_files.h"

namespace gpuctl::ptx {
namespace {

TEST(Rewrite, DividesByMultiplying) {
  for (const std::uint32_t d : {1u, 2u, 3u, 7u, 64u, 65u, 691u, 65535u, 1u << 30, (1u << 30) + 1, 0x7fffffffu}) {
    const Divisor by = divisor(d);
    for (const std::uint64_t multiple : {0ull, 1ull, 2ull, 3ull, 1000ull, 0x7fffffffull / d}) {
      for (const std::int64_t offset : {-1, 0, 1}) {
        const std::int64_t n = static_cast<std::int64_t>(multiple * d) + offset;
        if (n < 0 || n > 0x7fffffff) continue;
        const std::uint64_t product = static_cast<std::uint64_t>(2 * n) * by.magic;
        EXPECT_EQ(product >> 32 >> by.shift, static_cast<std::uint64_t>(n) / d) << n << " / " << d;
      }
    }
  }
}

TEST(Rewrite, ReportsTheParameterLayout) {
  const auto rewritten = rewrite_text(golden_text("append_launch_args/odd_sizes.ptx"));
  ASSERT_TRUE(rewritten);
  const EntryReport& report = rewritten->entries.at(0);
  EXPECT_EQ(report.form, Form::kPersistent) << report.reason;
  ASSERT_EQ(report.params.size(), 4u);
  EXPECT_EQ(report.params[0].offset, 0u);
  EXPECT_EQ(report.params[1].offset, 16u);
  EXPECT_EQ(report.params[1].size, 20u);
  EXPECT_EQ(report.params[2].offset, 36u);
  EXPECT_EQ(report.params[3].offset, 40u);
  EXPECT_EQ(report.params_bytes, 48u);
  EXPECT_EQ(report.args_offset, 48u);
}

TEST(Rewrite, ReportsWhatTheKernelUses) {
  const EntryReport report =
      report_on("mov.u32 %r1, %ctaid.y; mov.u32 %r2, %nctaid.x; st.shared.u32 [s], %r1; bar.sync 0; ret;");
  EXPECT_EQ(report.form, Form::kPersistent) << report.reason;
  EXPECT_EQ(report.reads_block_index, kReadsY);
  EXPECT_TRUE(report.uses_barrier);
  EXPECT_TRUE(report.uses_shared);
  EXPECT_FALSE(report.needs_finished_barrier);
  EXPECT_EQ(report.static_shared_bytes, 64u);
  EXPECT_EQ(report.args_offset, 16u);
}

TEST(Rewrite, LeavesTheOriginalUntouched) {
  for (const char* name :
       {"round_trip/kernels-sm_90.ptx", "round_trip/nvrtc-sm_75.ptx", "round_trip/debug-G-sm_90.ptx"}) {
    const std::string text = golden_text(name);
    const auto module = parse(text);
    ASSERT_TRUE(module);
    RewriteResult result = rewrite(*module);
    EXPECT_FALSE(result.entries.empty());
    // The added items are adjacent; without them the tokens are the original's.
    const std::size_t added = result.module.items.size() - module->items.size();
    std::size_t first = 0;
    while (first < module->items.size() && print(Module{"1", {}, "", {result.module.items[first]}}) ==
                                               print(Module{"1", {}, "", {module->items[first]}})) {
      ++first;
    }
    auto& items = result.module.items;
    const auto start = items.begin() + static_cast<std::ptrdiff_t>(first);
    items.erase(start, start + static_cast<std::ptrdiff_t>(added));
    EXPECT_EQ(print(result.module), print(*module)) << name;
  }
}

TEST(Rewrite, KeepsLinkageAndPerformanceDirectives) {
  const auto rewritten = rewrite_text(
      ".version 8.0 .target sm_90 .address_size 64 .weak .entry k() .maxntid 256, 1, 1 .minnctapersm 2 { .pragma "
      "\"nounroll\"; ret; }");
  ASSERT_TRUE(rewritten);
  const std::size_t at = rewritten->text.find("k__gpuslice_persistent");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(rewritten->text.substr(at - 13, 13), ".weak .entry ");
  for (const char* directive : {".maxntid 256, 1, 1", ".minnctapersm 2", ".pragma \"nounroll\";"}) {
    EXPECT_NE(rewritten->text.find(directive, at), std::string::npos) << directive;
  }
}

TEST(Rewrite, SharesCopiedFunctionsAmongKernels) {
  const auto rewritten = rewrite_text(
      ".version 8.0 .target sm_90 .address_size 64 .func f { .reg .b32 a; mov.u32 a, %ctaid.x; ret; }"
      ".entry one() { call f; ret; } .entry two() { call f; ret; }");
  ASSERT_TRUE(rewritten);
  const auto module = parse(rewritten->text);
  ASSERT_TRUE(module);
  int bodies = 0;
  for (const Item& item : module->items) {
    const auto* function = std::get_if<Function>(&item);
    bodies += function != nullptr && function->name == std::string("f") + kPersistentSuffix && function->body;
  }
  EXPECT_EQ(bodies, 1);
}

TEST(Rewrite, DoesNotRewriteItsOwnOutput) {
  const auto once = rewrite_text(golden_text("wrap_in_claim_loop/plain.ptx"));
  ASSERT_TRUE(once);
  const auto twice = rewrite_text(once->text);
  ASSERT_TRUE(twice);
  for (const EntryReport& report : twice->entries) EXPECT_EQ(report.form, Form::kOpaque) << report.name;
  EXPECT_EQ(print(*parse(twice->text)), print(*parse(once->text)));
}

struct OpaqueCase {
  const char* body;
  const char* reason;
  const char* before = "";
  const char* target = "sm_90";
};

TEST(Rewrite, GivesEachOpaqueReason) {
  const OpaqueCase kCases[] = {
      {"mov.u64 %rd1, %gridid; ret;", "reads %gridid"},
      {"mov.u32 %r1, %envreg2; ret;", "reads %envreg2 (cooperative grid synchronization)"},
      {"mov.u32 %r1, %total_smem_size; ret;", "reads %total_smem_size"},
      {"mov.u32 %r1, %unheard_of; ret;", "reads %unheard_of"},
      {"mov.u32 %r1, %cluster_ctarank; ret;", "uses thread block clusters"},
      {"barrier.cluster.arrive; barrier.cluster.wait; ret;", "uses thread block clusters"},
      {"ld.shared::cluster.u32 %r1, [s]; ret;", "uses thread block clusters"},
      {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [%rd1], 16, [s], "
       "%h1; ret;",
       "uses thread block clusters"},
      {"griddepcontrol.wait; ret;", "uses griddepcontrol (programmatic dependent launch)"},
      {"frobnicate.u32 %r1, 1; ret;", "instruction 'frobnicate' is not known"},
      {"mad.lo.u32 %r1, %r1, 2; ret;", "'mad' has too few operands"},
      {"t: brx.idx %r1, t; ret;", "jumps through a table (brx) that is not in sight"},
      {"bra nowhere; ret;", "branches to 'nowhere', which is no label of the function"},
      {"mul.lo.u16 %h1, %ctaid.x, 2; ret;", "reads 16 bits of %ctaid in 'mul'"},
      {".reg .b32 %gpuslice_x; ret;", "uses names reserved for the rewriter (gpuslice)"},
      {"call f; ret;", "calls 'f', which has no body here", ".extern .func f;"},
      {"call cudaLaunchDeviceV2; ret;", "launches kernels itself (dynamic parallelism)",
       ".extern .func cudaLaunchDeviceV2;"},
      {"call f; ret;", "calls 'f': a called function ends its thread (exit)", ".func f { exit; }"},
      {"call f; ret;", "calls 'f': reads %gridid", ".func f { .reg .b64 a; mov.u64 a, %gridid; ret; }"},
      {"mov.u64 %rd1, f; p: .callprototype _ (); call %rd1, (), p; ret;",
       "a function called through a pointer ('f') reads %ctaid or %nctaid",
       ".func f { .reg .b32 a; mov.u32 a, %ctaid.x; ret; }"},
      {"ret;", "target sm_60 is too old (sm_70 is needed)", "", "sm_60"},
      {"ret;", "compiled for the debugger (.target debug)", "", "sm_90, debug"},
      {"mov.u32 %r1, d; mov.u32 %r1, %dynamic_smem_size; ret;",
       "reads %dynamic_smem_size, and ours must lie behind its shared memory", ".extern .shared .align 4 .b8 d[];"},
  };
  for (const OpaqueCase& c : kCases) EXPECT_EQ(reason_for(c.body, c.before, c.target), c.reason) << c.body;
}

// What they leave behind in barriers or registers would disturb another block-task in the same block.
TEST(Rewrite, LeavesKernelsAloneWhoseBlocksCanRunOnce) {
  const OpaqueCase kCases[] = {
      {"setmaxnreg.inc.sync.aligned.u32 96; ret;", "uses setmaxnreg"},
      {"mbarrier.init.shared.b64 [s], 1; fence.mbarrier_init.release.cluster; ret;", "uses mbarrier"},
      {"cp.async.bulk.commit_group; ret;", "uses bulk copies (cp.async.bulk)"},
      {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1], 16, [s]; ret;",
       "uses bulk copies (cp.async.bulk)"},
      {"wgmma.fence.sync.aligned; ret;", "uses wgmma"},
      {"alloca.u64 %rd1, 16; ret;", "allocates stack at run time (alloca)"},
      {"bar.arrive 1, 64; ret;", "arrives at a barrier without waiting (bar.arrive)"},
      {"bar.sync 0, 64; ret;", "uses barrier 0 with a thread count"},
      {"bar.sync %r1; ret;", "uses a barrier whose number is not a constant"},
      {"call f; ret;", "calls 'f': uses wgmma", ".func f { wgmma.fence.sync.aligned; }"},
  };
  for (const OpaqueCase& c : kCases) EXPECT_EQ(reason_for(c.body, c.before, c.target), c.reason) << c.body;
}

TEST(Rewrite, LeavesDynamicSharedMemoryWhereItIs) {
  const std::string before = ".extern .shared .align 4 .b8 d[]; .func f { .reg .b32 a; mov.u32 a, d; ret; }\n";
  EXPECT_TRUE(report_on("mov.u32 %r1, d; ret;", before).words_behind);
  EXPECT_TRUE(report_on("call f; ret;", before).words_behind);
  EXPECT_FALSE(report_on("mov.u32 %r1, s; ret;", before).words_behind);
  EXPECT_FALSE(report_on("mov.u32 %r1, %dynamic_smem_size; ret;", before).words_behind);
  const EntryReport full = report_on(".shared .align 4 .b8 big[49080]; ret;");
  EXPECT_EQ(full.form, Form::kPersistent) << full.reason;
  EXPECT_TRUE(full.words_behind);
  EXPECT_EQ(with_shared_words(0), 64u);
  EXPECT_EQ(with_shared_words(1), 80u);
  EXPECT_EQ(with_shared_words(0xffffffff), 0xffffffff);  // the driver refuses such a size itself
}

TEST(Rewrite, LeavesAKernelAloneThatAddsToARegisterWhereItReadsIt) {
  EXPECT_EQ(reason_for("st.global.u32 [%rd1], %r1 + 1; ret;"),
            "adds a number to a register where it is read ('%r1+1')");
}

TEST(Rewrite, RefusesClustersAndFullParameterBlocks) {
  const auto cluster =
      rewrite_text(".version 8.0 .target sm_90 .address_size 64 .entry k() .reqnctapercluster 2, 1, 1 { ret; }");
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->entries.at(0).reason, "uses thread block clusters");
  for (const auto& [bytes, fits] : {std::pair{3984, true}, std::pair{3985, false}}) {
    const auto full = rewrite_text(".version 8.0 .target sm_90 .address_size 64 .entry k(.param .b8 p[" +
                                   std::to_string(bytes) + "]) { ret; }");
    ASSERT_TRUE(full);
    EXPECT_EQ(full->entries.at(0).form == Form::kPersistent, fits) << bytes;
  }
}

constexpr std::string_view kWaits = pass::kMayWaitForBlock;

TEST(Rewrite, RefusesLoopsThatWaitForOtherBlocks) {
  const char* const kWaiting[] = {
      "l: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra l; ret;",
      "l: ld.acquire.gpu.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra l; ret;",
      "l: ld.relaxed.gpu.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @!%p1 ret; bra l;",
      "l: atom.global.add.u32 %r1, [%rd1], 0; setp.lt.u32 %p1, %r1, %r2; @%p1 bra l; ret;",
      "l: atom.or.b32 %r1, [%rd1], 0; add.u32 %r2, %r1, 1; mov.u32 %r3, %r2; setp.lt.u32 %p1, %r3, 9; @%p1 bra l; ret;",
      // A lock: compare-and-swap against a constant waits for its holder.
      "l: atom.global.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra l; ret;",
      "mov.u32 %r2, 0; l: atom.global.cas.b32 %r1, [%rd1], %r2, 1; setp.ne.u32 %p1, %r1, %r2; @%p1 bra l; ret;",
      // Through control: the flag is set in a branch that depends on the read.
      "mov.u32 %r3, 0; l: ld.volatile.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra m; mov.u32 %r3, 1; m: "
      "setp.eq.u32 %p2, %r3, 0; @%p2 bra l; ret;",
      // Through shared memory: one thread polls, all look at what it wrote.
      "l: ld.volatile.global.u32 %r1, [%rd1]; st.shared.u32 [s], %r1; bar.sync 0; ld.shared.u32 %r2, [s]; bar.sync 0; "
      "setp.eq.u32 %p1, %r2, 0; @%p1 bra l; ret;",
      // Whatever the cache operator is.
      "l: ld.global.cg.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra l; ret;",
      "l: ld.global.L1::no_allocate.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra l; ret;",
      "l: ld.global.u32 %r1, [%rd1]; membar.cta; setp.eq.u32 %p1, %r1, 0; @%p1 bra l; ret;",
      "l: ld.u32 %r1, [%rd1+4]; setp.eq.u32 %p1, %r1, 0; @%p1 bra l; ret;",
      // A look-back in one loop: it goes on only where the other block has written.
      "l: mul.wide.s32 %rd2, %r5, 4; add.s64 %rd3, %rd1, %rd2; ld.global.cg.u32 %r1, [%rd3]; setp.eq.u32 %p1, %r1, 2; "
      "@%p1 ret; setp.eq.u32 %p2, %r1, 1; selp.b32 %r2, -1, 0, %p2; add.s32 %r5, %r5, %r2; setp.gt.s32 %p3, %r5, -1; "
      "@%p3 bra l; ret;",
      // Bounded, but it is there to see what another block writes.
      "mov.u32 %r5, 0; l: ld.global.cg.u32 %r1, [%rd1]; setp.ne.u32 %p1, %r1, 0; @%p1 ret; add.u32 %r5, %r5, 1; "
      "setp.lt.u32 %p2, %r5, 9; @%p2 bra l; ret;",
      // A few flags, round and round.
      "l: ld.volatile.u32 %r1, [%rd1]; and.b64 %rd1, %rd1, 63; setp.eq.u32 %p1, %r1, 0; @%p1 bra l; ret;",
      "l: cp.async.ca.shared.global [s], [%rd1], 4; cp.async.wait_all; ld.shared.u32 %r1, [s]; setp.eq.u32 %p1, %r1, "
      "0; "
      "@%p1 bra l; ret;",
      // An inner loop waits, the outer one counts.
      "mov.u32 %r5, 0; o: l: ld.volatile.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra l; add.u32 %r5, %r5, 1; "
      "setp.lt.u32 %p2, %r5, 9; @%p2 bra o; ret;",
  };
  for (const char* body : kWaiting) EXPECT_EQ(reason_for(body), kWaits) << body;
  EXPECT_EQ(reason_for("call f; ret;",
                       ".func f { .reg .u64 a; .reg .u32 b; .reg .pred p; l: ld.volatile.u32 b, [a]; "
                       "setp.eq.u32 p, b, 0; @p bra l; ret; }"),
            "calls 'f': " + std::string(kWaits));
  EXPECT_EQ(reason_for("l: call (%r1), f; setp.eq.u32 %p1, %r1, 0; @%p1 bra l; ret;",
                       ".func (.reg .u32 b) f { .reg .u64 a; ld.volatile.u32 b, [a]; ret; }"),
            kWaits);
}

TEST(Rewrite, SaysWhetherBlocksWaitOfRefusedKernelsToo) {
  const auto waits = [](const std::string& body, const std::string& before = "") {
    return report_on(body, before).blocks_wait;
  };
  const std::string poll = "l: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra l; ret;";
  EXPECT_EQ(waits("ret;"), BlocksWait::kNo);
  EXPECT_EQ(waits(poll), BlocksWait::kYes);
  EXPECT_EQ(waits("mov.u32 %r2, %gridid; " + poll), BlocksWait::kYes);
  EXPECT_EQ(waits("mov.u32 %r2, %gridid; ret;"), BlocksWait::kNo);
  EXPECT_EQ(waits("call f; ret;", ".extern .func f;\n"), BlocksWait::kUnknown);
  EXPECT_EQ(waits("nonsense.u32 %r2; ret;"), BlocksWait::kUnknown);
}

TEST(Rewrite, AllowsLoopsThatWaitForNobody) {
  const char* const kHarmless[] = {
      "l: ld.global.u32 %r1, [%rd1]; add.u64 %rd1, %rd1, 4; setp.eq.u32 %p1, %r1, 0; @%p1 bra l; ret;",
      "l: ld.volatile.shared.u32 %r1, [s]; setp.eq.u32 %p1, %r1, 0; @%p1 bra l; ret;",
      "mov.u32 %r5, 0; l: atom.global.add.u32 %r1, [%rd1], 1; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 9; @%p1 bra "
      "l; ret;",
      // What the loop itself does ends it: a queue, a walk, a search, its own store.
      "l: atom.global.add.u32 %r1, [%rd1], 1; setp.lt.u32 %p1, %r1, %r2; @%p1 bra l; ret;",
      "l: mul.wide.s32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; ld.global.cg.u32 %r1, [%rd3]; setp.ne.s32 %p1, %r1, -1; "
      "@%p1 bra l; ret;",
      "mov.u32 %r5, 0; l: ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd2], %r5; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, "
      "%r5, "
      "%r1; @%p1 bra l; ret;",
      "l: add.u32 %r1, %r2, %r3; shr.u32 %r1, %r1, 1; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; "
      "ld.global.u32 "
      "%r4, [%rd3]; setp.lt.u32 %p1, %r4, %r6; add.u32 %r5, %r1, 1; selp.b32 %r2, %r5, %r2, %p1; selp.b32 %r3, %r3, "
      "%r1, "
      "%p1; setp.lt.u32 %p2, %r2, %r3; @%p2 bra l; ret;",
      "l: ld.global.u32 %r1, [%rd1]; sub.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1; setp.ne.u32 %p1, %r1, 0; @%p1 bra "
      "l; "
      "ret;",
      // The keys of a hash table, one after the other.
      "l: mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; atom.global.cas.b32 %r4, [%rd3], 0, %r5; add.u32 %r1, "
      "%r1, "
      "1; and.b32 %r1, %r1, 63; setp.ne.u32 %p1, %r4, 0; @%p1 bra l; ret;",
      // The lock-free update, as nvcc writes atomicAdd(double) by hand.
      "ld.global.u64 %rd4, [%rd1]; l: add.u64 %rd5, %rd4, 1; atom.global.cas.b64 %rd6, [%rd1], %rd4, %rd5; "
      "setp.ne.s64 %p1, %rd4, %rd6; mov.u64 %rd4, %rd6; @%p1 bra l; ret;",
      "l: ld.global.u32 %r4, [%rd1]; add.u32 %r5, %r4, 1; atom.cas.b32 %r6, [%rd1], %r4, %r5; setp.ne.s32 %p1, %r6, "
      "%r4; "
      "@%p1 bra l; ret;",
  };
  for (const char* body : kHarmless) EXPECT_EQ(reason_for(body), "persistent") << body;
}

TEST(StandsAlone, OnlyWithoutVariablesAndPointersToFunctions) {
  const auto alone = [](const std::string& before, const std::string& body = "ret;") {
    const auto rewritten = rewrite_text(".version 8.0\n.target sm_90\n.address_size 64\n" + before +
                                        ".visible .entry k()\n{\n" + kRegisters + body + "\n}\n");
    EXPECT_TRUE(rewritten) << (rewritten ? "" : rewritten.error().message);
    return rewritten && rewritten->stands_alone;
  };
  EXPECT_TRUE(alone(""));
  EXPECT_TRUE(alone(".extern .shared .align 4 .b8 dynamic[];\n"));
  EXPECT_TRUE(alone(".global .align 1 .b8 $str[3] = {104, 105, 0};\n.global .align 1 .b8 $str$1[2] = {104, 0};\n"));
  EXPECT_FALSE(alone(".global .align 4 .u32 counter;\n"));
  EXPECT_FALSE(alone(".const .align 4 .f32 table[2];\n"));
  EXPECT_FALSE(alone(".global .texref texture;\n"));
  EXPECT_FALSE(alone(".extern .global .align 4 .u32 elsewhere;\n"));
  EXPECT_FALSE(alone("", "{ pr: .callprototype _ (); call %rd1, pr; }\nret;"));
}

}  // namespace
}  // namespace gpuctl::ptx
