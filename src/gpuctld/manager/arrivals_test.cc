#include "gpuctld/manager/arrivals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpuctld/protocol/process.h"

namespace gpuctl::daemon {
namespace {

TEST(Arrivals, OneOfAProcessInASliceIsNews) {
  Arrivals arrivals;
  EXPECT_TRUE(arrivals.news(::getpid(), "ls"));
  EXPECT_FALSE(arrivals.news(::getpid(), "ls"));
  EXPECT_TRUE(arrivals.news(::getpid(), "batch"));
  EXPECT_TRUE(arrivals.news(::getpid(), "ls"));
  EXPECT_TRUE(arrivals.news(::getppid(), "ls"));
}

TEST(Arrivals, ProcessesHaveAStart) {
  EXPECT_NE(start_of(::getpid()), 0u);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(start_of(child), 0u);
}

TEST(Arrivals, WhoIsGoneIsForgotten) {
  Arrivals arrivals;
  arrivals.news(::getpid(), "ls");
  for (int i = 0; i < 100; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (;;) ::pause();
    }
    EXPECT_TRUE(arrivals.news(child, "ls"));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    EXPECT_LE(arrivals.remembered(), 64u);
  }
  EXPECT_FALSE(arrivals.news(::getpid(), "ls"));
}

}  // namespace
}  // namespace gpuctl::daemon
