#include "gpuctl/kernel_lines.h"

#include <gtest/gtest.h>

namespace gpuctl::cli {
namespace {

using Lines = std::vector<std::string>;

TEST(KernelLines, Demangling) {
  EXPECT_EQ(demangled("_Z5scalePff"), "scale(float*, float)");
  EXPECT_EQ(demangled("vectorAdd"), "vectorAdd");
  EXPECT_EQ(demangled("f"), "f");
  EXPECT_EQ(demangled("_Zgarbage"), "_Zgarbage");
}

TEST(KernelLines, OneLineEach) {
  const Table table = kernel_table({
      {"_Z5scalePff", "m0", "opaque", "grid barrier: cooperative_groups sync", 3, 0, 40, 0, 0},
      {"vectorAdd", "m0", "persistent", "all rules met", 12400, 34, 30, 8, 21260},
      {"never", "m0", "guarded", "cluster launch", 0, 0, 0, 2, 0},
  });
  EXPECT_EQ(table.lines(),
            (Lines{"FORM        LAUNCHES  REGISTERS  WORKERS/SM  BLOCK-TASK  KERNEL                REASON",
                   "persistent     12.4k   30 -> 34           8     21.3 us  vectorAdd             all rules met",
                   "opaque             3         40           -           -  scale(float*, float)  grid barrier: "
                   "cooperative_groups sync",
                   "guarded            0          -           2           -  never                 cluster launch"}));
}

}  // namespace
}  // namespace gpuctl::cli
