#include "gpuctld/restart/moved.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpuctl::daemon {
namespace {

/// Processes that live until the test ends.
class MovedTest : public testing::Test {
 protected:
  ~MovedTest() override {
    for (const pid_t pid : pids_) end(pid);
  }
  MovedProgram program(std::uint32_t uid, std::string slice = "ls") {
    const pid_t pid = ::fork();
    if (pid == 0)
      for (;;) ::pause();
    pids_.push_back(pid);
    return {{pid, start_of(pid), uid}, std::move(slice)};
  }
  static void end(pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }

  std::vector<pid_t> pids_;
};

TEST_F(MovedTest, WhoMovesManyLosesThoseAlone) {
  Moved moved(6);
  const MovedProgram first = program(1), second = program(1);
  moved.note(first), moved.note(second);
  std::vector<MovedProgram> many;
  for (int i = 0; i < 10; ++i) moved.note(many.emplace_back(program(2)));
  EXPECT_EQ(moved.programs().size(), 6u);
  EXPECT_NE(moved.of(first.process), nullptr);
  EXPECT_NE(moved.of(second.process), nullptr);
  EXPECT_EQ(moved.of(many[5].process), nullptr);
  EXPECT_NE(moved.of(many[6].process), nullptr) << "the latest of those stay";
}

TEST_F(MovedTest, ThoseThatHaveEndedMakeRoomFirst) {
  Moved moved(4);
  for (int i = 0; i < 3; ++i) moved.note(program(2));
  const MovedProgram first = program(1);
  moved.note(first);
  end(pids_[0]);
  pids_.erase(pids_.begin());
  const MovedProgram more = program(2);
  moved.note(more);
  EXPECT_EQ(moved.programs().size(), 4u);
  EXPECT_NE(moved.of(first.process), nullptr);
  EXPECT_NE(moved.of(more.process), nullptr);
}

TEST_F(MovedTest, TheLatestSliceCounts) {
  Moved moved;
  MovedProgram one = program(1, "a");
  moved.note(one);
  one.slice = "b";
  moved.note(one);
  ASSERT_EQ(moved.programs().size(), 1u);
  EXPECT_EQ(moved.of(one.process)->slice, "b");
  moved.keep([](const std::string& slice) { return slice == "a"; });
  EXPECT_EQ(moved.of(one.process), nullptr);
}

TEST_F(MovedTest, WhatStartsAnewIsForgotten) {
  Moved moved;
  const MovedProgram one = program(1);
  EXPECT_FALSE(moved.forget(one.process));
  moved.note(one);
  EXPECT_TRUE(moved.forget(one.process));
  EXPECT_EQ(moved.of(one.process), nullptr);
}

/// All are written each time that a grant grows, and to look whether a process has ended takes the daemon's time.
TEST_F(MovedTest, WhoMovesManyMakesTheDaemonWriteAndLookAtFew) {
  std::size_t looked = 0;
  Moved moved(Moved::kMost, [&](const ProcessIdentity&) { return ++looked > 0; });
  std::int32_t pid = 0;
  constexpr std::size_t kNoted = 4 * Moved::kMost;
  for (std::size_t i = 0; i < kNoted; ++i) moved.note({{++pid, 1, 1}, "ls"});
  EXPECT_EQ(moved.programs().size(), Moved::kMostOfUser);
  for (std::uint32_t uid = 2; uid < 4 * Moved::kMost / Moved::kMostOfUser; ++uid)
    for (std::size_t i = 0; i < Moved::kMostOfUser; ++i) moved.note({{++pid, 1, uid}, "ls"});
  EXPECT_EQ(moved.programs().size(), Moved::kMost);
  EXPECT_GT(looked, 0u);
  EXPECT_LE(looked, 16 * static_cast<std::size_t>(pid));
  Moved of_root;
  for (std::size_t i = 0; i < 2 * Moved::kMostOfUser; ++i)
    of_root.note({{::getpid(), start_of(::getpid()), 0}, "ls"}), of_root.note({{++pid, 0, 0}, "ls"});
  EXPECT_GT(of_root.programs().size(), Moved::kMostOfUser);
}

}  // namespace
}  // namespace gpuctl::daemon
