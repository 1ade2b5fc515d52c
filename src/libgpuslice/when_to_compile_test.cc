#include "libgpuslice/when_to_compile.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

constexpr std::size_t kLong = 100'000;
constexpr LoadFacts kUsual{
    .text_bytes = kLong, .machine_code = true, .stands_alone = true, .has_context = true, .has_cache = true};

TEST(WhenToCompile, LongTextsOfProgramsWithMachineCodeWait) {
  EXPECT_EQ(when_to_compile(kUsual), Compile::kLater);
  LoadFacts facts = kUsual;
  facts.has_cache = false;
  EXPECT_EQ(when_to_compile(facts), Compile::kLater);
  facts = kUsual;
  facts.machine_code = false;
  EXPECT_EQ(when_to_compile(facts), Compile::kNow);
}

TEST(WhenToCompile, ShortTextsDoNot) {
  LoadFacts facts = kUsual;
  facts.text_bytes = static_cast<std::size_t>(std::chrono::nanoseconds(kWorthWaiting) / estimated_compile_time(1));
  EXPECT_EQ(when_to_compile(facts), Compile::kNow);
  ++facts.text_bytes;
  EXPECT_EQ(when_to_compile(facts), Compile::kLater);
}

TEST(WhenToCompile, VariablesExistOnce) {
  LoadFacts facts = kUsual;
  facts.stands_alone = false;
  EXPECT_EQ(when_to_compile(facts), Compile::kNextStart);
  facts.has_cache = false;  // the next start would find nothing
  EXPECT_EQ(when_to_compile(facts), Compile::kNow);
}

TEST(WhenToCompile, TheUserAndTheProgramHaveASay) {
  LoadFacts facts = kUsual;
  facts.may_wait = false;
  EXPECT_EQ(when_to_compile(facts), Compile::kNow);
  facts = kUsual;
  facts.changed_by_options = true;
  EXPECT_EQ(when_to_compile(facts), Compile::kNow);
  facts = kUsual;
  facts.has_context = false;
  EXPECT_EQ(when_to_compile(facts), Compile::kNow);
}

TEST(WhenToCompile, OptionsThatOnlyTalk) {
  const CUjit_option logs[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_WALL_TIME};
  const CUjit_option limit[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_MAX_REGISTERS};
  EXPECT_FALSE(options_change_code(0, nullptr));
  EXPECT_FALSE(options_change_code(3, logs));
  EXPECT_TRUE(options_change_code(2, limit));
  EXPECT_FALSE(options_change_code(1, limit));
}

}  // namespace
}  // namespace gpuslice
