// Tests for errors that other rewriters make in the text of a kernel; tests/system/kernels/defects_test.py runs the
// same kernels.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ptx/pass/refuse_waiting_blocks.h"
#include "ptx/persistent_abi.h"
#include "ptx/rewrite.h"
#include "ptx/syntax/parser.h"
#include "ptx/syntax/printer.h"
#include "ptx/testing/test_files.h"

namespace gpuctl::ptx {
namespace {

/// The result for the only entry of a module.
struct Rewritten {
  EntryReport report;
  std::string original;                ///< the entry's body
  std::string persistent;              ///< the same in the form added to it; empty if there is none
  std::vector<std::string> functions;  ///< bodies of the functions copied for it
};

std::string body_text(const Function& function) {
  Function one = function;
  one.name = "f";
  one.params.clear();
  return print(Module{"1", {}, "", {one}});
}

Rewritten rewritten(const std::string& text) {
  const auto module = parse(text);
  EXPECT_TRUE(module) << (module ? "" : module.error().message);
  if (!module) return {};
  RewriteResult result = rewrite(*module);
  EXPECT_EQ(result.entries.size(), 1u);
  Rewritten all;
  all.report = result.entries.at(0);
  for (const Item& item : result.module.items) {
    const auto* function = std::get_if<Function>(&item);
    if (function == nullptr || !function->body) continue;
    const bool ours = function->name.ends_with(kPersistentSuffix);
    if (function->is_entry) (ours ? all.persistent : all.original) = body_text(*function);
    if (!function->is_entry && ours) all.functions.push_back(body_text(*function));
  }
  return all;
}

Rewritten of_defect(const std::string& name) {
  return rewritten(golden_text("defects/" + name + ".ptx"));
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += what.size()) ++found;
  return found;
}

/// How often the worker reads the index of its own block. The kernel does nothing, so all the reads are the worker's.
std::size_t own_reads() {
  return count(rewritten(".version 7.8 .target sm_75 .address_size 64 .entry k() { ret; }").persistent, "%ctaid");
}

TEST(Defects, EveryKindOfReturnLeadsToTheEndOfTheBlockTask) {
  const Rewritten kernel = of_defect("predicated_exit");
  ASSERT_EQ(kernel.report.form, Form::kPersistent) << kernel.report.reason;
  EXPECT_EQ(count(kernel.original, "ret;") + count(kernel.original, "exit;"), 3u);
  EXPECT_EQ(count(kernel.persistent, "exit;"), 0u);
  EXPECT_EQ(count(kernel.persistent, "ret;"), 1u);  // the worker's
  for (const char* guard : {"@%p1 bra $gpuslice_", "@!%p2 bra $gpuslice_", "@%p3 bra $gpuslice_"}) {
    EXPECT_NE(kernel.persistent.find(guard), std::string::npos) << guard;
  }
}

TEST(Defects, NamedBarriersKeepTheirNames) {
  const Rewritten kernel = of_defect("named_barriers");
  ASSERT_EQ(kernel.report.form, Form::kPersistent) << kernel.report.reason;
  for (const char* barrier :
       {"bar.sync \t1, 64;", "barrier.sync \t2, 64;", "barrier.red.popc.u32 \t%r13, 3, 128, %p4;"}) {
    EXPECT_GT(count(kernel.original, barrier), 0u) << barrier << kernel.original;
    EXPECT_EQ(count(kernel.persistent, barrier), count(kernel.original, barrier)) << barrier;
  }
  // A block whose threads may return before such a barrier is left as it is, because its rewritten form would be wrong.
  const Rewritten early = rewritten(
      ".version 7.8 .target sm_75 .address_size 64 .entry k() { .reg .u32 r; .reg .pred p; mov.u32 r, %tid.x; "
      "setp.gt.u32 p, r, 5; "
      "@p exit; barrier.sync 3; ret; }");
  EXPECT_EQ(early.report.reason, "threads may return before barriers that are named, counted or reducing");
}

TEST(Defects, CalledFunctionsAreGivenTheIndexOfTheBlockTask) {
  const Rewritten kernel = of_defect("block_index_in_function");
  ASSERT_EQ(kernel.report.form, Form::kPersistent) << kernel.report.reason;
  ASSERT_EQ(kernel.functions.size(), 3u);
  for (const std::string& function : kernel.functions) {
    EXPECT_EQ(count(function, "%ctaid") + count(function, "%nctaid"), 0u) << function;
    EXPECT_GT(count(function, "%gpuslice_ctaid_"), 0u) << function;
  }
  for (const char* name : {"inner", "outer", "place"}) {
    EXPECT_EQ(count(kernel.persistent, std::string(name) + ","), 0u) << name;  // the original is no longer called
  }
}

TEST(Defects, EveryInstructionThatReadsTheIndexIsRewritten) {
  const Rewritten kernel = of_defect("block_index_otherwise");
  ASSERT_EQ(kernel.report.form, Form::kPersistent) << kernel.report.reason;
  EXPECT_GT(count(kernel.original, "%ctaid"), 6u);
  EXPECT_EQ(count(kernel.persistent, "%ctaid"), own_reads()) << kernel.persistent;
  EXPECT_EQ(count(kernel.persistent, "%nctaid"), 0u);
  // The assembler takes such reads only in mov and cvt. In any instruction, no read of the original remains.
  const Rewritten other = rewritten(
      ".version 7.8 .target sm_75 .address_size 64 .entry k(.param .u64 out) { .reg .u32 r; .reg .pred p; "
      "mad.lo.u32 r, %ctaid.x, %nctaid.y, %ctaid.z; setp.lt.u32 p, %ctaid.y, r; st.global.u32 [0], %ctaid.x; ret; }");
  ASSERT_EQ(other.report.form, Form::kPersistent) << other.report.reason;
  EXPECT_EQ(count(other.persistent, "%ctaid"), own_reads());
  EXPECT_NE(other.persistent.find("%gpuslice_ctaid_x, %gpuslice_nctaid_y, %gpuslice_ctaid_z"), std::string::npos);
}

TEST(Defects, ParametersMayBeAbsentOrAnywhere) {
  const Rewritten none = of_defect("no_parameters");
  ASSERT_EQ(none.report.form, Form::kPersistent) << none.report.reason;
  EXPECT_EQ(none.report.params.size(), 0u);
  EXPECT_EQ(none.report.args_offset, 0u);
  const Rewritten indented = of_defect("indented_parameters");
  ASSERT_EQ(indented.report.form, Form::kPersistent) << indented.report.reason;
  ASSERT_EQ(indented.report.params.size(), 1u);
  EXPECT_EQ(indented.report.args_offset, 8u);
}

TEST(Defects, BlocksThatNeedEachOtherAreRecognised) {
  for (const char* name : {"cooperative", "look_back_scan", "blocks_wait_for_each_other"}) {
    const Rewritten kernel = of_defect(name);
    EXPECT_EQ(kernel.report.form, Form::kOpaque) << name;
    EXPECT_EQ(kernel.report.reason, pass::kMayWaitForBlock) << name;
    EXPECT_TRUE(kernel.persistent.empty());
  }
  const auto reason_of = [](const std::string& directives, const std::string& body) {
    return rewritten(".version 8.0 .target sm_90 .address_size 64 .entry k() " + directives + " { .reg .u32 r; " +
                     body + " ret; }")
        .report.reason;
  };
  const std::string clusters = "uses thread block clusters";
  for (const char* directive : {".reqnctapercluster 2, 1, 1", ".explicitcluster", ".maxclusterrank 8"}) {
    EXPECT_EQ(reason_of(directive, ""), clusters) << directive;
  }
  for (const char* instruction :
       {"mov.u32 r, %cluster_ctaid.x;", "mov.u32 r, %nclusterid.x;", "mov.u32 r, %is_explicit_cluster;",
        "barrier.cluster.arrive.aligned;", "mapa.shared::cluster.u32 r, r, 0;"}) {
    EXPECT_EQ(reason_of("", instruction), clusters) << instruction;
  }
  EXPECT_EQ(reason_of("", "mov.u32 r, %envreg1;"), "reads %envreg1 (cooperative grid synchronization)");
}

}  // namespace
}  // namespace gpuctl::ptx
