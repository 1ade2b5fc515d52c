// Grants of clients that are gone, as their remaining work on the GPU reads them.
#include "gpuctld/ends/departed.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/sm_range.h"
#include "gpuctld/protocol/peer.h"
#include "gpuctld/testing/pinned.h"

namespace gpuctl::daemon {
namespace {

static_assert(pack_range(ipc::kUnlimited, kNoLimit) == pack_range(kMaxSms, kNoLimit));

/// Whether every worker of the client, whatever its stream, may use every SM.
bool open(const ipc::StubMap& page, std::size_t device = 0) {
  const Polled& polled = page->grant[device].polled;
  const std::uint32_t capsm = ipc::load(polled.capsm);
  return std::all_of(std::begin(polled.limits), std::end(polled.limits), [&](const Polled::Limit& limit) {
    return pack_range(capsm, limit) == pack_range(kMaxSms, kNoLimit);
  });
}

class DepartedTest : public testing::Test {
 protected:
  ~DepartedTest() override {
    while (!children_.empty()) end(children_.back());
  }
  pid_t child() {
    const pid_t pid = ::fork();
    if (pid == 0)
      for (;;) ::pause();
    children_.push_back(pid);
    return pid;
  }
  void end(pid_t pid) {
    std::erase(children_, pid);
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  static ipc::UniqueFd pidfd(pid_t pid) { return ipc::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

  /// A client of two devices: evicted from the first, with few SMs on the second, which it divides among its streams.
  static Client client(pid_t pid, std::uint32_t uid = 0) {
    Client made = std::move(Client::create({pid, uid, "program"}, "/", {0, 1}).value());
    made.write_grant(0, 0, 0, 1);
    made.write_grant(1, 8, 0, 1);
    ipc::StubMap page = ipc::StubMap::map(made.memfd()).value();
    for (Polled::Limit& limit : page->grant[1].polled.limits) limit = {2, 3};
    return made;
  }

  boost::asio::io_context context_{1};
  Departed departed_{context_};
  std::vector<pid_t> children_;
};

TEST_F(DepartedTest, TheGrantsOfAnEndedProcessAreOpened) {
  const pid_t pid = child();
  Client gone = client(pid);
  const ipc::StubMap page = ipc::StubMap::map(gone.memfd()).value();
  const Pinned gpu(page.get());
  ipc::UniqueFd exit = pidfd(pid);
  end(pid);
  EXPECT_FALSE(open(page, 0));
  EXPECT_FALSE(open(page, 1));
  departed_.keep(std::move(gone), std::move(exit));
  context_.run();
  EXPECT_TRUE(gpu.open(0));
  EXPECT_TRUE(gpu.open(1));
  EXPECT_EQ(departed_.waiting(), 0u);
}

// It may have become another program, which has the same number and knows nothing of this work.
TEST_F(DepartedTest, TheGrantsOfAProcessThatSaidItLeavesAreOpenedThoughItLives) {
  const pid_t pid = child();
  Client gone = client(pid);
  const ipc::StubMap page = ipc::StubMap::map(gone.memfd()).value();
  ipc::store(page->leaving, 1u);
  EXPECT_FALSE(open(page, 1));
  departed_.keep(std::move(gone), pidfd(pid));
  EXPECT_TRUE(open(page, 0));
  EXPECT_TRUE(open(page, 1));
  EXPECT_EQ(departed_.waiting(), 1u) << "it may wait for that work before it ends";
}

TEST_F(DepartedTest, AProcessThatLivesKeepsItsGrantUntilItEnds) {
  const pid_t pid = child();
  Client gone = client(pid);
  const ipc::StubMap page = ipc::StubMap::map(gone.memfd()).value();
  const Pinned gpu(page.get());
  departed_.keep(std::move(gone), pidfd(pid));
  EXPECT_EQ(departed_.waiting(), 1u);
  context_.poll();
  EXPECT_EQ(ipc::load(page->grant[0].polled.capsm), 0u);
  EXPECT_EQ(ipc::load(page->grant[1].polled.capsm), 8u);
  end(pid);
  context_.run();  // until no process is waited for
  EXPECT_TRUE(gpu.open(0));
  EXPECT_TRUE(gpu.open(1));
  EXPECT_EQ(departed_.waiting(), 0u);
}

TEST_F(DepartedTest, NoGrantIsWrittenOverAnOpenOne) {
  Client client = DepartedTest::client(::getpid());
  const ipc::StubMap page = ipc::StubMap::map(client.memfd()).value();
  client.open_grants();
  client.write_grant(0, 4, 0, 2);
  EXPECT_TRUE(open(page));
}

TEST_F(DepartedTest, StoppingLeavesEverythingAsItIs) {
  const pid_t pid = child();
  Client gone = client(pid);
  const ipc::StubMap page = ipc::StubMap::map(gone.memfd()).value();
  departed_.keep(std::move(gone), pidfd(pid));
  departed_.stop();
  end(pid);
  context_.run();
  EXPECT_EQ(ipc::load(page->grant[1].polled.capsm), 8u);
}

TEST_F(DepartedTest, AProcessThatComesAndGoesCostsNoMoreThanSoMuch) {
  const pid_t pid = child(), other = child();
  departed_.keep(client(other), pidfd(other));
  for (std::size_t i = 0; i < 3 * kMaxDepartedOfProcess; ++i) departed_.keep(client(pid), pidfd(pid));
  EXPECT_EQ(departed_.waiting(), kMaxDepartedOfProcess + 1);
  context_.poll();
  end(pid);
  end(other);
  context_.run();
  EXPECT_EQ(departed_.waiting(), 0u);
}

/// Kernels that were launched before the process attached again read there still.
TEST_F(DepartedTest, APageThatIsLetGoIsOpenForWhatRunsOnTheGpu) {
  const pid_t pid = child();
  Client first = client(pid);
  const Pinned on_gpu(ipc::StubMap::map(first.memfd())->get());
  departed_.keep(std::move(first), pidfd(pid));
  for (std::size_t i = 1; i < kMaxDepartedOfProcess; ++i) departed_.keep(client(pid), pidfd(pid));
  EXPECT_FALSE(on_gpu.open(0));
  departed_.keep(client(pid), pidfd(pid));
  EXPECT_TRUE(on_gpu.open(0));
}

TEST_F(DepartedTest, AUserWithManyProcessesCostsNoMoreThanSoMuch) {
  const pid_t other = child();
  departed_.keep(client(other, 1), pidfd(other));
  while (children_.size() < 2 * kMaxDepartedOfUser / kMaxDepartedOfProcess) {
    const pid_t pid = child();
    for (std::size_t i = 0; i < kMaxDepartedOfProcess; ++i) departed_.keep(client(pid, 2), pidfd(pid));
  }
  EXPECT_EQ(departed_.waiting(), kMaxDepartedOfUser + 1);
}

TEST_F(DepartedTest, WhatAClientReportedIsForgotten) {
  const auto in_use = [] { return mallinfo2().uordblks; };
  if (in_use() == 0) GTEST_SKIP() << "this build's allocator does not say what is in use";
  const pid_t pid = child();
  const std::size_t before = in_use();
  Client gone = client(pid);
  for (int i = 0; i < 1000; ++i) gone.report({{.name = std::string(1000, 'n') + std::to_string(i)}});
  EXPECT_GT(in_use(), before + 1'000'000);
  departed_.keep(std::move(gone), pidfd(pid));
  EXPECT_EQ(departed_.waiting(), 1u);
  EXPECT_LT(in_use(), before + 100'000) << "but for the page of a process that lives";
}

TEST_F(DepartedTest, AProcessIsSeenToEnd) {
  const pid_t pid = child();
  const ipc::UniqueFd exit = pidfd(pid);
  EXPECT_FALSE(process_ends(exit.get(), pid));
  EXPECT_FALSE(process_ends(pidfd(::getpid()).get(), ::getpid()));
  std::thread([] { EXPECT_FALSE(process_ends(pidfd(::getpid()).get(), ::getpid())); }).join();
  ::kill(pid, SIGKILL);
  siginfo_t info;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(process_ends(exit.get(), pid));  // it is not reaped yet
  EXPECT_TRUE(process_ends(-1, pid));          // its threads say so too
  end(pid);
  EXPECT_TRUE(process_ends(exit.get(), pid));
}

}  // namespace
}  // namespace gpuctl::daemon
