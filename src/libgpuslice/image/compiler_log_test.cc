#include "libgpuslice/image/compiler_log.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

TEST(CompilerLog, SaysWhatEachKernelUses) {
  const auto kernels = read_compiler_log(R"(ptxas info    : 14 bytes gmem
ptxas info    : Compiling entry function '_Z1pPi' for 'sm_90'
ptxas info    : Function properties for _Z1pPi
    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 24 registers, used 0 barriers, 8 bytes cumulative stack size
ptxas info    : Compile time = 8.770 ms
ptxas info    : Compiling entry function '_Z1kPfi' for 'sm_90'
ptxas info    : Function properties for _Z1kPfi
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Function properties for helper
    96 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers
)");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels.at("_Z1pPi").registers, 24);
  EXPECT_EQ(kernels.at("_Z1pPi").local_bytes, 8);
  EXPECT_EQ(kernels.at("_Z1kPfi").registers, 12);
  EXPECT_EQ(kernels.at("_Z1kPfi").local_bytes, 0);
}

TEST(CompilerLog, LeavesOutWhatItDoesNotUnderstand) {
  EXPECT_TRUE(read_compiler_log("").empty());
  EXPECT_TRUE(read_compiler_log("ptxas info    : Used 12 registers\n").empty());
  EXPECT_TRUE(read_compiler_log("Compiling entry function 'k' for 'sm_90'\nsomething else").empty());
  EXPECT_TRUE(read_compiler_log(
                  "ptxas info : Compiling entry function 'k' for 'sm_90'\nptxas info : Function properties for k\n"
                  " 0 bytes stack frame\nptxas info : Used many registers\n")
                  .empty());
}

}  // namespace
}  // namespace gpuslice
