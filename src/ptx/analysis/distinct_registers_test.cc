#include "ptx/analysis/distinct_registers.h"

#include <gtest/gtest.h>

#include <string>

#include "ptx/syntax/parser.h"
#include "ptx/syntax/printer.h"

namespace gpuctl::ptx {
namespace {

std::string kernel(const std::string& body) {
  return ".version 7.8\n.target sm_75\n.address_size 64\n.entry k(.param .u32 n)\n{\n" + body + "\nret;\n}\n";
}

/// The printed result; empty if nothing is renamed.
std::string renamed(const std::string& body) {
  const auto module = parse(kernel(body));
  EXPECT_TRUE(module) << body;
  const std::optional<Module> result = with_distinct_registers(*module);
  return result ? print(*result) : "";
}
std::string printed(const std::string& body) {
  return print(*parse(kernel(body)));
}

TEST(DistinctRegisters, LeavesAloneWhatHasOneNameEach) {
  EXPECT_EQ(renamed(".reg .b32 %r<4>; mov.u32 %r1, 0;"), "");
  EXPECT_EQ(renamed(".reg .b32 %r<4>; { .reg .b32 %q, %r4; mov.u32 %q, %r1; mov.u32 %r4, %q; }"), "");
}

TEST(DistinctRegisters, RenamesThoseOfInnerScopesAndDeclaresThemOutside) {
  EXPECT_EQ(
      renamed(".reg .pred %p<3>; .reg .b32 %r<3>; @%p1 mov.u32 %r1, 0;"
              "{ .reg .pred %p1, %q; setp.eq.u32 %p1, %r1, 0; @%p1 add.u32 %r1, %r1, 1; @%q add.u32 %r2, %r2, 1; }"
              "@%p1 mov.u32 %r2, 0;"),
      printed(".reg .pred %p1_in1_; .reg .pred %p<3>; .reg .b32 %r<3>; @%p1 mov.u32 %r1, 0;"
              "{ .reg .pred %q; setp.eq.u32 %p1_in1_, %r1, 0; @%p1_in1_ add.u32 %r1, %r1, 1;"
              "@%q add.u32 %r2, %r2, 1; } @%p1 mov.u32 %r2, 0;"));
}

TEST(DistinctRegisters, RenamesRangesAndWhatIsWithinOperands) {
  EXPECT_EQ(renamed(".reg .b32 %r2; .reg .b64 %a; { .reg .b32 %r<4>; ld.global.v2.u32 {%r2, %r3}, [%a]; }"
                    "{ .reg .b64 %a; mov.u64 %a, 0; st.global.u32 [%a+4], %r2; }"),
            printed(".reg .b32 %r_in1_<4>; .reg .b64 %a_in2_; .reg .b32 %r2; .reg .b64 %a;"
                    "{ ld.global.v2.u32 {%r_in1_2, %r_in1_3}, [%a]; }"
                    "{ mov.u64 %a_in2_, 0; st.global.u32 [%a_in2_+4], %r2; }"));
}

TEST(DistinctRegisters, TellsScopesApartThatFollowOrContainEachOther) {
  const std::string text = renamed(
      "{ .reg .b32 t; mov.u32 t, 1; } { .reg .b32 t; mov.u32 t, 2; { .reg .b32 t; mov.u32 t, 3; } mov.u32 t, 4; }");
  for (const char* line : {"mov.u32 \tt, 1", "mov.u32 \tt_in1_, 2", "mov.u32 \tt_in2_, 3", "mov.u32 \tt_in1_, 4"})
    EXPECT_NE(text.find(line), text.npos) << line << "\n" << text;
}

TEST(DistinctRegisters, TakesNoNameThatIsThere) {
  const std::string text = renamed(".reg .b32 t, t_in1_; { .reg .b32 t; mov.u32 t, t_in1_; }");
  EXPECT_NE(text.find("mov.u32 \tt_in2_, t_in1_"), text.npos) << text;
  const std::string beside = renamed(".reg .b32 t; .shared .b32 t_in1_; { .reg .b32 t; mov.u32 t, t_in1_; }");
  EXPECT_NE(beside.find("mov.u32 \tt_in2_, t_in1_"), beside.npos) << beside;
}

}  // namespace
}  // namespace gpuctl::ptx
