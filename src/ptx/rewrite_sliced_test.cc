#include <gtest/gtest.h>

#include <set>

#include "ptx/pass/refuse_waiting_blocks.h"
#include "ptx/rewrite.h"
#include "ptx/subgrid_abi.h"
#include "ptx/syntax/parser.h"
#include "ptx/syntax/printer.h"
#include "ptx/testing/report.h"
#include "ptx/testing/test_files.h"

namespace gpuctl::ptx::sliced_test {
namespace {

EntryReport sliced(const std::string& body, const std::string& before = "", const std::string& target = "sm_90") {
  return report_on(body, before, target, Wanted::kSliced);
}

/// The reason why the entry is opaque, or "sliced".
std::string reason_for_sliced(const std::string& body, const std::string& before = "") {
  const EntryReport report = sliced(body, before);
  EXPECT_TRUE(report.form == Form::kSliced || report.form == Form::kOpaque);
  return report.form == Form::kSliced ? "sliced" : report.reason;
}

TEST(RewriteSliced, ReportsTheForm) {
  const EntryReport report = sliced("mov.u32 %r1, %ctaid.y; bar.sync 0; ret;");
  EXPECT_EQ(report.form, Form::kSliced);
  EXPECT_EQ(report.reason, "its blocks wait for no other block");
  EXPECT_EQ(report.reads_block_index, kReadsY);
  EXPECT_EQ(report.params.size(), 2u);
  EXPECT_EQ(report.args_offset, 16u);
}

TEST(RewriteSliced, AddsOneEntryUnderItsOwnName) {
  const auto rewritten = rewrite_text(golden_text("number_subgrid/one_axis.ptx"), Wanted::kSliced);
  ASSERT_TRUE(rewritten);
  const auto module = parse(rewritten->text);
  ASSERT_TRUE(module);
  std::set<std::string> names;
  for (const Item& item : module->items) {
    if (const auto* function = std::get_if<Function>(&item)) names.insert(function->name);
  }
  EXPECT_EQ(names, (std::set<std::string>{"one_axis", std::string("one_axis") + kSlicedSuffix}));
}

// What a block leaves behind in barriers or registers disturbs no other block-task: each block runs one.
TEST(RewriteSliced, TakesKernelsWhoseBlocksLeaveSomethingBehind) {
  const std::string body = "mbarrier.init.shared.b64 [s], %r1; bar.sync 0; ret;";
  EXPECT_EQ(report_on(body).form, Form::kOpaque);
  EXPECT_EQ(reason_for_sliced(body), "sliced");
}

// Threads that return early end as they would in the original, so nobody has to wait for them.
TEST(RewriteSliced, LeavesReturnsAndBarriersAlone) {
  const std::string body = "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; @%p1 ret; bar.sync 0; exit;";
  const EntryReport report = sliced(body);
  EXPECT_EQ(report.form, Form::kSliced) << report.reason;
  EXPECT_FALSE(report.needs_finished_barrier);
  EXPECT_FALSE(report.needs_whole_warps);
}

TEST(RewriteSliced, NeedsNoSharedMemory) {
  const std::string dynamic = ".extern .shared .align 16 .b8 dynamic[];\n";
  const EntryReport report = sliced("mov.u32 %r1, %dynamic_smem_size; st.shared.u32 [dynamic], %r1; ret;", dynamic);
  EXPECT_EQ(report.form, Form::kSliced) << report.reason;
  EXPECT_FALSE(report.words_behind);
}

TEST(RewriteSliced, RefusesWhatASeriesOfGridsCannotDo) {
  EXPECT_EQ(reason_for_sliced("mov.u64 %rd1, %gridid; ret;"), "reads %gridid");
  EXPECT_EQ(reason_for_sliced("mov.u32 %r1, %envreg1; ret;"), "reads %envreg1 (cooperative grid synchronization)");
  EXPECT_EQ(reason_for_sliced("mov.u32 %r1, %cluster_ctaid.x; ret;"), "uses thread block clusters");
  EXPECT_EQ(reason_for_sliced("barrier.cluster.arrive; ret;"), "uses thread block clusters");
  EXPECT_EQ(reason_for_sliced("griddepcontrol.wait; ret;"), "uses griddepcontrol (programmatic dependent launch)");
  EXPECT_EQ(reason_for_sliced("call.uni outside; ret;", ".extern .func outside;\n"),
            "calls 'outside', which has no body here");
  EXPECT_EQ(reason_for_sliced("call.uni cudaLaunchDeviceV2; ret;", ".extern .func cudaLaunchDeviceV2;\n"),
            "launches kernels itself (dynamic parallelism)");
  EXPECT_EQ(reason_for_sliced("WAIT: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra WAIT; ret;"),
            pass::kMayWaitForBlock);
}

TEST(RewriteSliced, RefusesAFunctionBehindAPointerThatReadsTheBlockIndex) {
  const std::string before =
      ".func f() { .reg .b32 %r<2>; mov.u32 %r1, %ctaid.x; ret; }\n.global .u64 table[1] = {f};\n";
  EXPECT_EQ(reason_for_sliced(
                "ld.global.u64 %rd1, [table]; prototype: .callprototype ()_ (); call %rd1, prototype; ret;", before),
            "a function called through a pointer ('f') reads %ctaid or %nctaid");
}

TEST(RewriteSliced, RefusesAModuleThatHasSuchEntriesAlready) {
  const auto once = rewrite_text(golden_text("number_subgrid/one_axis.ptx"), Wanted::kSliced);
  ASSERT_TRUE(once);
  const auto twice = rewrite_text(once->text, Wanted::kSliced);
  ASSERT_TRUE(twice);
  for (const EntryReport& entry : twice->entries) EXPECT_EQ(entry.form, Form::kOpaque) << entry.name;
}

TEST(RewriteSliced, LeavesTheOriginalUntouched) {
  for (const char* name : {"round_trip/kernels-sm_90.ptx", "round_trip/nvrtc-sm_75.ptx"}) {
    const auto module = parse(golden_text(name));
    ASSERT_TRUE(module);
    RewriteResult result = rewrite(*module, {}, Wanted::kSliced);
    std::erase_if(result.module.items, [](const Item& item) {
      const auto* function = std::get_if<Function>(&item);
      return function != nullptr && function->name.ends_with(kSlicedSuffix);
    });
    EXPECT_EQ(print(result.module), print(*module)) << name;
  }
}

}  // namespace
}  // namespace gpuctl::ptx::sliced_test
