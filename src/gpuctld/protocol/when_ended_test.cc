#include "gpuctld/protocol/when_ended.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>

namespace gpuctl::daemon::when_ended_test {
namespace {

using boost::asio::posix::stream_descriptor;
using boost::system::error_code;
using namespace std::chrono_literals;

pid_t child() {
  const pid_t pid = ::fork();
  if (pid == 0)
    for (;;) ::pause();
  return pid;
}

void end(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

/// Two pipes become readable at once. When the loop calls back for the first, the second is closed, and the pidfd gets
/// what the loop had for it, with its readiness.
TEST(WhenEnded, WhatAnotherDescriptorWasIsNoEnd) {
  boost::asio::io_context context(1);
  std::array<int, 2> first{}, second{};
  ASSERT_EQ(::pipe(first.data()) + ::pipe(second.data()), 0);
  const pid_t pid = child();
  const auto pidfd = std::make_shared<stream_descriptor>(context);
  stream_descriptor a(context, first[0]), b(context, second[0]);
  bool ended = false, began = false;
  b.async_wait(stream_descriptor::wait_read, [](error_code) {});
  a.async_wait(stream_descriptor::wait_read, [&](error_code) {
    b.close();
    pidfd->assign(open_pidfd(pid).release());
    when_ended(*pidfd, std::weak_ptr(pidfd), [&](const auto&) { ended = true; });
    began = true;
  });
  ASSERT_EQ(::write(first[1], "x", 1) + ::write(second[1], "x", 1), 2);
  context.run_for(100ms);
  EXPECT_TRUE(began);
  EXPECT_FALSE(ended);
  end(pid);
  context.restart();
  context.run_for(10s);
  EXPECT_TRUE(ended);
  ::close(first[1]), ::close(second[1]);
}

TEST(WhenEnded, NothingIsSaidOfADescriptorThatIsGone) {
  boost::asio::io_context context(1);
  const pid_t pid = child();
  auto pidfd = std::make_shared<stream_descriptor>(context, open_pidfd(pid).release());
  bool ended = false;
  when_ended(*pidfd, std::weak_ptr(pidfd), [&](const auto&) { ended = true; });
  pidfd.reset();
  end(pid);
  context.run_for(1s);
  EXPECT_FALSE(ended);
}

}  // namespace
}  // namespace gpuctl::daemon::when_ended_test
