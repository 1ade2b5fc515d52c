#include "libgpuslice/jit_options.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace gpuslice {
namespace {

constexpr std::size_t kLargeText = 1'000'000;

void* value(std::uintptr_t number) { return reinterpret_cast<void*>(number); }

TEST(CompileThreads, AreThoseOfTheProcessUpToALimit) {
  EXPECT_EQ(compile_threads(13'000, kLargeText, 4), 4u);
  EXPECT_EQ(compile_threads(13'010, kLargeText, 1), 1u);
  EXPECT_EQ(compile_threads(13'000, kLargeText, 256), 8u);
  EXPECT_EQ(compile_threads(13'000, kLargeText, 0), 1u);
}

TEST(CompileThreads, AreLeftToAnOlderDriverAndForLittleText) {
  EXPECT_EQ(compile_threads(12'090, kLargeText, 16), 1u);
  EXPECT_EQ(compile_threads(13'000, 1000, 16), 1u);
}

TEST(JitOptions, AddsARegisterLimitAndThreads) {
  JitOptions options(nullptr, nullptr, 0, 32, 8);
  ASSERT_EQ(options.count(), 2u);
  EXPECT_EQ(options.names()[0], CU_JIT_MAX_REGISTERS);
  EXPECT_EQ(options.values()[0], value(32));
  EXPECT_EQ(options.names()[1], kCompileThreads);
  EXPECT_EQ(options.values()[1], value(8));
}

TEST(JitOptions, AddsNothingWithoutNeed) { EXPECT_EQ(JitOptions(nullptr, nullptr, 0, 0, 1).count(), 0u); }

TEST(JitOptions, KeepsWhatTheProgramSays) {
  const CUjit_option names[] = {CU_JIT_MAX_REGISTERS, kCompileThreads};
  void* values[] = {value(64), value(2)};
  JitOptions options(names, values, 2, 32, 8);
  ASSERT_EQ(options.count(), 2u);
  EXPECT_EQ(options.values()[0], value(64));
  EXPECT_EQ(options.values()[1], value(2));
  EXPECT_FALSE(options.drop_threads());
  EXPECT_EQ(options.count(), 2u);
}

TEST(JitOptions, DropsOnlyTheThreads) {
  const CUjit_option names[] = {CU_JIT_OPTIMIZATION_LEVEL};
  void* values[] = {value(3)};
  JitOptions options(names, values, 1, 32, 8);
  EXPECT_TRUE(options.drop_threads());
  EXPECT_FALSE(options.drop_threads());
  ASSERT_EQ(options.count(), 2u);
  EXPECT_EQ(options.names()[0], CU_JIT_OPTIMIZATION_LEVEL);
  EXPECT_EQ(options.names()[1], CU_JIT_MAX_REGISTERS);
}

TEST(JitOptions, HandsTheProgramWhatTheDriverAnswered) {
  const CUjit_option names[] = {CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {value(1000)};
  JitOptions options(names, values, 1, 32, 8);
  options.values()[0] = value(17);
  options.values()[1] = value(99);
  EXPECT_EQ(values[0], value(1000));
  options.give_back();
  EXPECT_EQ(values[0], value(17));
}

TEST(AttemptLoad, TriesAgainWithoutThreads) {
  const CUjit_option names[] = {CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {value(1000)};
  JitOptions options(names, values, 1, 0, 8);
  std::vector<unsigned> counts;
  EXPECT_TRUE(attempt_load(options, [&] {
    counts.push_back(options.count());
    options.values()[0] = value(counts.size());
    return options.count() == 1;
  }));
  EXPECT_EQ(counts, (std::vector<unsigned>{2, 1}));
  EXPECT_EQ(values[0], value(2));
}

TEST(AttemptLoad, TriesOnceWhatHasNoThreadsOrSucceeds) {
  JitOptions plain(nullptr, nullptr, 0, 0, 1);
  int attempts = 0;
  EXPECT_FALSE(attempt_load(plain, [&] { return ++attempts > 1; }));
  EXPECT_EQ(attempts, 1);
  JitOptions threads(nullptr, nullptr, 0, 0, 8);
  EXPECT_TRUE(attempt_load(threads, [&] { return ++attempts == 2; }));
  EXPECT_EQ(attempts, 2);
}

TEST(AttemptLoad, KeepsTheProgramsValuesWhenAllFails) {
  const CUjit_option names[] = {CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {value(1000)};
  JitOptions options(names, values, 1, 0, 8);
  EXPECT_FALSE(attempt_load(options, [&] {
    options.values()[0] = value(1);
    return false;
  }));
  EXPECT_EQ(values[0], value(1000));
}

}  // namespace
}  // namespace gpuslice
