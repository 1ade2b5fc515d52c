#include "ptx/analysis/grid_walk.h"

#include <gtest/gtest.h>

#include <string>

#include "ptx/syntax/parser.h"

namespace gpuctl::ptx {
namespace {

/// A kernel with these instructions behind `%i` = the thread's index and `%stride` = the number of threads in the grid.
bool walks(const std::string& instructions) {
  const auto module = parse(
      ".version 7.8\n.target sm_75\n.address_size 64\n.entry k(.param .u32 n, .param .u64 a)\n{\n"
      ".reg .pred %p;\n.reg .b32 %i, %j, %next, %x, %nx, %cx, %ncx, %stride, %four, %n, %bid;\n"
      ".reg .b64 %a, %wide;\n"
      "ld.param.u32 %n, [n]; ld.param.u64 %a, [a]; mov.u32 %x, %tid.x; mov.u32 %nx, %ntid.x; mov.u32 %cx, %ctaid.x;\n"
      "mad.lo.s32 %i, %cx, %nx, %x; mov.u32 %ncx, %nctaid.x; mul.lo.s32 %stride, %ncx, %nx;\n" +
      instructions + "\nret;\n}\n");
  EXPECT_TRUE(module) << instructions;
  return walks_grid(std::get<Function>(module->items[0]));
}

TEST(GridWalk, ByTheNumberOfThreadsInTheGrid) {
  EXPECT_TRUE(walks("LOOP: add.s32 %i, %i, %stride; setp.lt.s32 %p, %i, %n; @%p bra LOOP;"));
  EXPECT_TRUE(walks("LOOP: add.s32 %next, %i, %stride; setp.lt.s32 %p, %next, %n; mov.u32 %i, %next; @%p bra LOOP;"))
      << "through another register";
  EXPECT_TRUE(walks("LOOP: add.s32 %i, %ncx, %i; setp.lt.s32 %p, %i, %n; @%p bra LOOP;")) << "a block at a time";
}

TEST(GridWalk, ByAMultipleAndByPointers) {
  EXPECT_TRUE(walks("shl.b32 %four, %stride, 2;\nLOOP: add.s32 %i, %i, %four; setp.lt.s32 %p, %i, %n; @%p bra LOOP;"));
  EXPECT_TRUE(
      walks("mul.wide.s32 %wide, %stride, 4;\nLOOP: add.s64 %a, %a, %wide; add.s32 %j, %j, 1;\n"
            "setp.lt.s32 %p, %j, %n; @%p bra LOOP;"));
  EXPECT_TRUE(
      walks("LOOP: add.s32 %j, %i, %stride; add.s32 %next, %j, %stride; setp.lt.s32 %p, %next, %n;\n"
            "mov.u32 %i, %next; @%p bra LOOP;"))
      << "an unrolled loop";
}

TEST(GridWalk, NotByLoopsThatOnlyKnowTheGrid) {
  EXPECT_FALSE(walks("LOOP: add.s32 %i, %i, %nx; setp.lt.s32 %p, %i, %stride; @%p bra LOOP;")) << "the bound";
  EXPECT_FALSE(walks("LOOP: add.s32 %j, %i, %stride; add.s32 %i, %i, 1; setp.lt.s32 %p, %i, %n; @%p bra LOOP;"))
      << "it is added, but what comes of it is not added to again";
  EXPECT_FALSE(
      walks("mad.lo.s32 %bid, %cx, %ncx, %x;\nLOOP: add.s32 %i, %i, %bid; setp.lt.s32 %p, %i, %n; @%p bra LOOP;"))
      << "the number of the block is no multiple of the grid";
}

TEST(GridWalk, NotWithoutALoop) {
  EXPECT_FALSE(walks("add.s32 %i, %i, %stride;"));
  EXPECT_FALSE(walks(""));
}

}  // namespace
}  // namespace gpuctl::ptx
