#include "libgpuslice/base/traced.h"

#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuslice {
namespace {

TEST(IsTraced, SaysWhetherADebuggerHasHoldOfTheProgram) {
  EXPECT_FALSE(is_traced());
  const pid_t child = fork();
  if (child == 0) {
    const bool before = is_traced();
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(3);
    _exit(!before && is_traced() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 3) GTEST_SKIP() << "this system lets nobody trace";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace gpuslice
