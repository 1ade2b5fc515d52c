#include "gpuctld/host/mps_control.h"

#include <gtest/gtest.h>

#include <map>

#include "gpuctld/testing/fake_mps_control.h"

namespace gpuctl::daemon {
namespace {

using namespace std::chrono_literals;
using Outcome = MpsControl::Outcome;

class MpsControlTest : public testing::Test {
 protected:
  MpsControl::Place place(std::chrono::milliseconds deadline = 60s) const {
    return {.program = fake_.program(), .pipe_directory = fake_.directory(), .deadline = deadline};
  }
  void ask(MpsControl::Place place, std::vector<std::int32_t> pids) {
    control_.terminate(std::move(place), std::move(pids),
                       [this](std::int32_t pid, const Outcome& outcome) { outcomes_.emplace(pid, outcome); });
  }
  void run() {
    context_.run();
    context_.restart();
  }

  FakeMpsControl fake_;
  boost::asio::io_context context_{1};
  MpsControl control_{context_};
  std::multimap<std::int32_t, Outcome> outcomes_;
};

TEST(MpsControl, AnswersArePidsOneALine) {
  EXPECT_EQ(pids_in("12\n 7 \r\n\n34"), (std::vector<std::int32_t>{12, 7, 34}));
  EXPECT_EQ(pids_in("Cannot find MPS control daemon process\n0\n-4\n99999999999\n1 2\n"),
            (std::vector<std::int32_t>{}));
  EXPECT_TRUE(pids_in("").empty());
}

TEST_F(MpsControlTest, AClientIsFoundTerminatedAndSeenToBeGone) {
  fake_.write("servers", "10\n20\n");
  fake_.write("clients.10", "1\n2\n");
  fake_.write("clients.20", "3\n4711\n");
  ask(place(), {4711});
  EXPECT_TRUE(outcomes_.empty());
  run();
  ASSERT_EQ(outcomes_.size(), 1u);
  EXPECT_EQ(outcomes_.find(4711)->second.what, Outcome::terminated);
  EXPECT_EQ(fake_.read("clients.20"), "3\n");
  EXPECT_EQ(
      fake_.read("asked"),
      "get_server_list  \nget_client_list 20 \nget_client_list 10 \nterminate_client 20 4711\nget_client_list 20 \n");
}

TEST_F(MpsControlTest, WhoIsNoClientOfMpsIsLeftAlone) {
  ask(place(), {4711});
  run();
  ASSERT_EQ(outcomes_.size(), 1u);
  EXPECT_EQ(outcomes_.find(4711)->second.what, Outcome::not_listed);
  EXPECT_EQ(fake_.read("asked"), "get_server_list  \n");
}

TEST_F(MpsControlTest, SeveralAreTerminatedOneByOne) {
  fake_.write("servers", "10\n");
  fake_.write("clients.10", "1\n2\n3\n");
  ask(place(), {1, 3, 5});
  ask(place(), {2});
  run();
  ASSERT_EQ(outcomes_.size(), 4u);
  for (const int pid : {1, 2, 3}) EXPECT_EQ(outcomes_.find(pid)->second.what, Outcome::terminated) << pid;
  EXPECT_EQ(outcomes_.find(5)->second.what, Outcome::not_listed);
  EXPECT_EQ(fake_.read("clients.10"), "");
}

TEST_F(MpsControlTest, AnIdleClientMayStayListedAfterMpsTerminatedIt) {
  fake_.write("servers", "10\n");
  fake_.write("clients.10", "1\n2\n");
  fake_.write("terminate", "echo 0\n");
  ask(place(), {1});
  run();
  EXPECT_EQ(outcomes_.find(1)->second.what, Outcome::terminated);
}

TEST_F(MpsControlTest, AClientThatStaysListedIsAFailureWithWhatWasSaid) {
  fake_.write("servers", "10\n");
  fake_.write("clients.10", "1\n2\n");
  fake_.write("terminate", "echo perhaps; echo more\n");
  ask(place(), {1});
  run();
  EXPECT_EQ(outcomes_.find(1)->second.what, Outcome::failed);
  EXPECT_EQ(outcomes_.find(1)->second.reason,
            "the MPS server still lists it 500 ms after terminate_client, which said 'perhaps'");
}

TEST_F(MpsControlTest, AClientThatMpsDoesNotTerminateIsNotWaitedFor) {
  fake_.write("servers", "10\n");
  fake_.write("clients.10", "1\n2\n");
  fake_.write("terminate", "[ $client = 1 ] || : > clients.$server; echo \"Invalid process $client!\"; echo 1\n");
  ask(place(), {1, 2});
  run();
  EXPECT_EQ(outcomes_.find(1)->second.reason,
            "the MPS server still lists it after terminate_client, which said 'Invalid process 1!'");
  EXPECT_EQ(outcomes_.find(2)->second.what, Outcome::terminated);  // it had left by itself
  EXPECT_EQ(fake_.read("asked"),
            "get_server_list  \nget_client_list 10 \nterminate_client 10 1\nget_client_list 10 \n"
            "terminate_client 10 2\nget_client_list 10 \n");
}

TEST_F(MpsControlTest, AnMpsOfAnotherUserIsAskedForNothingMore) {
  fake_.write("servers", "10\n");
  fake_.write("clients.10", "1\n2\n");
  fake_.write("terminate", FakeMpsControl::kRefuses);
  ask(place(), {1, 2});
  run();
  ASSERT_EQ(outcomes_.size(), 2u);
  for (const int pid : {1, 2})
    EXPECT_EQ(outcomes_.find(pid)->second.reason,
              "MPS was started by another user, and obeys that user and root alone: gpuctld must run as that user, or "
              "with --mps-control-socket (gpuctld.service(8))");
  EXPECT_EQ(fake_.read("asked"), "get_server_list  \nget_client_list 10 \nterminate_client 10 1\n");
}

TEST_F(MpsControlTest, OneThatHangsIsEndedAtTheDeadline) {
  fake_.write("begin", "echo $$ > pid; sleep 600; exit 0\n");
  ask(place(200ms), {1, 2});
  run();
  ASSERT_EQ(outcomes_.size(), 2u);
  for (const int pid : {1, 2}) {
    EXPECT_EQ(outcomes_.find(pid)->second.what, Outcome::failed);
    EXPECT_EQ(outcomes_.find(pid)->second.reason, fake_.program() + " did not answer within 200 ms");
  }
  // Nothing of it is left. On a slow machine it did not come as far as to say who it is.
  if (const std::string pid = fake_.read("pid"); !pid.empty()) {
    EXPECT_NE(::kill(std::stoi(pid), 0), 0);
  }
  std::filesystem::remove(fake_.directory() + "/begin");
  ask(place(), {3});  // and the next one works
  run();
  EXPECT_EQ(outcomes_.find(3)->second.what, Outcome::not_listed);
}

TEST_F(MpsControlTest, FailuresSayWhatTheProgramSaid) {
  fake_.write("begin", "echo 'Cannot find MPS control daemon process' >&2; exit 1\n");
  ask(place(), {1});
  MpsControl::Place nowhere = place();
  nowhere.program += "-not-there";
  ask(nowhere, {2});
  run();
  EXPECT_EQ(outcomes_.find(1)->second.reason,
            fake_.program() + ": exit status 1: Cannot find MPS control daemon process");
  EXPECT_EQ(outcomes_.find(2)->second.reason, nowhere.program + ": No such file or directory");
}

TEST_F(MpsControlTest, WithoutEndItsOutputIsBoundedAndStoppingEndsIt) {
  fake_.write("begin", "yes; exit 0\n");
  ask(place(), {1});
  boost::asio::steady_timer timer(context_, 100ms);
  timer.async_wait([this](auto) { control_.stop(); });
  run();
  EXPECT_TRUE(outcomes_.empty());
}

}  // namespace
}  // namespace gpuctl::daemon
