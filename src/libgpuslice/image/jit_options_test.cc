#include "libgpuslice/image/jit_options.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace gpuslice {
namespace {

void* as_value(std::uintptr_t number) {
  return reinterpret_cast<void*>(number);
}

TEST(JitOptionsTest, WithoutOptionsThereIsNoLimit) {
  EXPECT_EQ(register_limit_of(0, nullptr, nullptr), 0);
}

TEST(JitOptionsTest, LogsAndTheUsualLevelLeaveTheCodeAlone) {
  const CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_GENERATE_LINE_INFO};
  void* const values[] = {nullptr, as_value(4), as_value(1)};
  EXPECT_EQ(register_limit_of(3, options, values), 0);
}

TEST(JitOptionsTest, FindsTheLimit) {
  const CUjit_option options[] = {CU_JIT_LOG_VERBOSE, CU_JIT_MAX_REGISTERS};
  void* const values[] = {as_value(1), as_value(40)};
  EXPECT_EQ(register_limit_of(2, options, values), 40);
}

TEST(JitOptionsTest, OtherCodeIsNothing) {
  const CUjit_option debug[] = {CU_JIT_GENERATE_DEBUG_INFO};
  const CUjit_option level[] = {CU_JIT_OPTIMIZATION_LEVEL};
  void* const values[] = {as_value(1)};
  EXPECT_FALSE(register_limit_of(1, debug, values));
  EXPECT_FALSE(register_limit_of(1, level, values));
}

}  // namespace
}  // namespace gpuslice
