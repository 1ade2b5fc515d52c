#include "gpuctld/ends/end_client.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace gpuctl::daemon {
namespace {

using namespace std::chrono_literals;
using Mps = EndProgress::Mps;

TEST(EndClient, MpsThenTheSignalThenSigkill) {
  const EndOrder order{.signal = SIGINT, .timeout = 300ms};
  EndProgress progress;
  progress.mps = Mps::to_ask;
  EXPECT_EQ(next_step(order, progress), EndStep::ask_mps);
  progress.mps = Mps::asked;
  EXPECT_EQ(next_step(order, progress), EndStep::wait);
  progress.mps = Mps::answered;
  EXPECT_EQ(next_step(order, progress), EndStep::send_signal);
  progress.sent = SIGINT;
  progress.since = 299ms;
  EXPECT_EQ(next_step(order, progress), EndStep::wait);
  progress.since = 300ms;
  EXPECT_EQ(next_step(order, progress), EndStep::send_kill);
  progress.sent = SIGKILL;
  progress.since = kKilledWithin - 1ms;
  EXPECT_EQ(next_step(order, progress), EndStep::wait);
  progress.since = kKilledWithin;
  EXPECT_EQ(next_step(order, progress), EndStep::finish);
}

TEST(EndClient, WithoutMpsTheSignalComesAtOnce) {
  EXPECT_EQ(next_step({}, {}), EndStep::send_signal);
  EXPECT_EQ(next_step({.signal = SIGKILL, .timeout = {}}, {}), EndStep::send_signal);
}

TEST(EndClient, ItIsOverWhenTheProcessIs) {
  EndProgress progress;
  progress.ended = true;
  for (const Mps mps : {Mps::not_active, Mps::to_ask, Mps::asked, Mps::answered}) {
    progress.mps = mps;
    EXPECT_EQ(next_step({}, progress), EndStep::finish);
  }
  EXPECT_EQ(next_step({}, {.refused = true}), EndStep::finish);
}

TEST(EndClient, SignalsHaveNames) {
  EXPECT_EQ(ending_signal("TERM"), SIGTERM);
  EXPECT_EQ(ending_signal("sigint"), SIGINT);
  EXPECT_EQ(ending_signal("Kill"), SIGKILL);
  for (const char* other : {"", "SIG", "STOP", "SIGCONT", "9", "TERMINATE"})
    EXPECT_EQ(ending_signal(other), std::nullopt) << other;
  EXPECT_EQ(signal_name(SIGUSR1), "SIGUSR1");
  EXPECT_EQ(signal_name(SIGSEGV), "signal 11");
}

class EndingTest : public testing::Test {
 protected:
  /// A child that has done `prepare` and then waits.
  pid_t child(void (*prepare)()) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      prepare();
      (void)!::write(ends[1], "x", 1);
      for (;;) ::pause();
    }
    char ready = 0;
    EXPECT_EQ(::read(ends[0], &ready, 1), 1);
    ::close(ends[0]);
    ::close(ends[1]);
    return pid;
  }
  std::shared_ptr<Ending> end(pid_t pid, EndOrder order, MaySignal may = MaySignal::yes) {
    ipc::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    return Ending::create(
        context_, std::move(pidfd), {pid, "./a", "batch", "", {}, false}, order, [may] { return may; },
        [this](const std::string& line) { log_.push_back(line); },
        [this](const ipc::EndedClient& result) { results_.push_back(result); });
  }
  int status(pid_t pid) {
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

  boost::asio::io_context context_{1};
  std::vector<std::string> log_;
  std::vector<ipc::EndedClient> results_;
};

TEST_F(EndingTest, AProgramThatGoesIsLeftToGo) {
  const pid_t pid = child([] { ::signal(SIGTERM, [](int) { ::_exit(7); }); });
  end(pid, {.signal = SIGTERM, .timeout = 60s})->start(false);
  context_.run();
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0].signals, std::vector<std::string>{"SIGTERM"});
  EXPECT_TRUE(results_[0].ended);
  EXPECT_EQ(results_[0].mps, "not active");
  EXPECT_EQ(status(pid), 7);
  EXPECT_TRUE(log_.empty());
}

TEST_F(EndingTest, OneThatStaysIsKilled) {
  const pid_t pid = child([] { ::signal(SIGTERM, SIG_IGN); });
  end(pid, {.signal = SIGTERM, .timeout = 50ms})->start(false);
  context_.run();
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0].signals, (std::vector<std::string>{"SIGTERM", "SIGKILL"}));
  EXPECT_TRUE(results_[0].ended);
  EXPECT_EQ(status(pid), -SIGKILL);
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_NE(log_[0].find("is still there 50 ms after SIGTERM"), std::string::npos) << log_[0];
}

TEST_F(EndingTest, WhoWantsToKnowIsToldOfSigkillAndOfNoOtherSignal) {
  int killed = 0;
  const pid_t goes = child([] {}), stays = child([] { ::signal(SIGTERM, SIG_IGN); });
  const auto first = end(goes, {.signal = SIGTERM, .timeout = 60s});
  first->on_killed([&] { ++killed; });
  first->start(false);
  context_.run();
  context_.restart();
  EXPECT_EQ(status(goes), -SIGTERM);
  EXPECT_EQ(killed, 0);
  const auto second = end(stays, {.signal = SIGTERM, .timeout = 50ms});
  second->on_killed([&] { ++killed; });
  second->start(false);
  context_.run();
  EXPECT_EQ(status(stays), -SIGKILL);
  EXPECT_EQ(killed, 1);
}

TEST_F(EndingTest, AProcessOfAnotherUserIsSentNothing) {
  const pid_t pid = child([] {});
  end(pid, {.signal = SIGKILL, .timeout = 60s}, MaySignal::no)->start(false);
  context_.run();
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_TRUE(results_[0].signals.empty());
  EXPECT_FALSE(results_[0].ended);
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_NE(log_[0].find("is not sent SIGKILL: it now runs as another user"), std::string::npos) << log_[0];
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), 0);
  ::kill(pid, SIGKILL);
  status(pid);
}

TEST_F(EndingTest, ANumberThatIsAnotherProcessNowIsSentNothing) {
  const pid_t pid = child([] {});
  end(pid, {.signal = SIGTERM, .timeout = 10ms}, MaySignal::gone)->start(false);
  context_.run();
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_TRUE(results_[0].signals.empty());
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), 0);
  ::kill(pid, SIGKILL);
  status(pid);
}

TEST_F(EndingTest, NoSignalBeforeMpsHasAnswered) {
  const pid_t pid = child([] {});
  const auto ending = end(pid, {});
  ending->start(true);
  context_.run_for(100ms);
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), 0);
  EXPECT_TRUE(results_.empty());
  ending->mps_answered({MpsControl::Outcome::failed, "no\nMPS"});
  context_.run();
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0].mps, "no MPS");
  EXPECT_EQ(status(pid), -SIGTERM);
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_NE(log_[0].find("not terminated (no MPS); going on with SIGTERM"), std::string::npos) << log_[0];
}

TEST_F(EndingTest, OneThatEndsWhileMpsIsAskedNeedsNoSignal) {
  const pid_t pid = child([] {});
  const auto ending = end(pid, {});
  ending->start(true);
  ::kill(pid, SIGKILL);
  context_.run();
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_TRUE(results_[0].ended);
  EXPECT_TRUE(results_[0].signals.empty());
  ending->mps_answered({MpsControl::Outcome::terminated, ""});  // too late
  EXPECT_EQ(results_.size(), 1u);
  EXPECT_EQ(status(pid), -SIGKILL);
}

TEST_F(EndingTest, AnotherOrderSendsItsSignalAndWaitsNoLonger) {
  const pid_t pid = child([] {
    ::signal(SIGTERM, SIG_IGN);
    ::signal(SIGINT, SIG_IGN);
  });
  const auto ending = end(pid, {.signal = SIGTERM, .timeout = 60s});
  ending->start(false);
  context_.run_for(20ms);
  ending->again({.signal = SIGINT, .timeout = 30ms});
  context_.run();
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0].signals, (std::vector<std::string>{"SIGTERM", "SIGINT", "SIGKILL"}));
  EXPECT_EQ(status(pid), -SIGKILL);
  ending->again({.signal = SIGTERM, .timeout = 0ms});  // it is over
  EXPECT_EQ(results_.size(), 1u);
}

TEST_F(EndingTest, ACancelledOneSaysNothingMore) {
  const pid_t pid = child([] { ::signal(SIGTERM, SIG_IGN); });
  const auto ending = end(pid, {.signal = SIGTERM, .timeout = 60s});
  ending->start(false);
  context_.run_for(50ms);
  ending->cancel();
  context_.run();
  EXPECT_TRUE(results_.empty());
  ::kill(pid, SIGKILL);
  status(pid);
}

}  // namespace
}  // namespace gpuctl::daemon
