#include "libgpuslice/image/linked_ptx.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

const CUlinkState kState = reinterpret_cast<CUlinkState>(16);

TEST(LinkedPtx, OneTextIsWhatTheOutputIsMadeOf) {
  LinkedPtx linked;
  linked.created(kState, 0, nullptr, nullptr);
  EXPECT_FALSE(linked.made_of(kState));
  linked.added(kState, std::string_view("text\0", 5), 0, nullptr, nullptr);
  ASSERT_TRUE(linked.made_of(kState));
  EXPECT_EQ(linked.made_of(kState)->text, "text");
  EXPECT_EQ(linked.made_of(kState)->max_registers, 0);
  linked.destroyed(kState);
  EXPECT_FALSE(linked.made_of(kState));
  linked.added(kState, "text", 0, nullptr, nullptr);  // of a linker whose creation was not seen
  EXPECT_FALSE(linked.made_of(kState));
}

TEST(LinkedPtx, MoreThanOneInputIsNotKnown) {
  LinkedPtx linked;
  linked.created(kState, 0, nullptr, nullptr);
  linked.added(kState, "one", 0, nullptr, nullptr);
  linked.added(kState, "two", 0, nullptr, nullptr);
  EXPECT_FALSE(linked.made_of(kState));
  linked.created(kState, 0, nullptr, nullptr);  // another linker, at the address of the first
  linked.added_other(kState);
  linked.added(kState, "one", 0, nullptr, nullptr);
  EXPECT_FALSE(linked.made_of(kState));
}

TEST(LinkedPtx, OptionsThatALoadCanRepeat) {
  LinkedPtx linked;
  char log[8];
  const CUjit_option options[] = {CU_JIT_MAX_REGISTERS, CU_JIT_INFO_LOG_BUFFER};
  void* const values[] = {reinterpret_cast<void*>(40), log};
  linked.created(kState, 2, options, values);
  linked.added(kState, "text", 0, nullptr, nullptr);
  EXPECT_EQ(linked.made_of(kState)->max_registers, 40);
  void* const fewer[] = {reinterpret_cast<void*>(32), log};
  linked.created(kState, 2, options, values);
  linked.added(kState, "text", 2, options, fewer);
  EXPECT_EQ(linked.made_of(kState)->max_registers, 32);
  const CUjit_option debug[] = {CU_JIT_GENERATE_DEBUG_INFO};
  void* const yes[] = {reinterpret_cast<void*>(1)};
  linked.created(kState, 1, debug, yes);
  linked.added(kState, "text", 0, nullptr, nullptr);
  EXPECT_FALSE(linked.made_of(kState));
}

}  // namespace
}  // namespace gpuslice
