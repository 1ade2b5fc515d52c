// Connections that keep the daemon waiting. The clock is an argument; the sockets are real, and everything runs on one
// thread.
#include "gpuctld/protocol/session.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "gpuctld/clock.h"
#include "gpuctld/protocol/answers.h"
#include "gpuctld/protocol/listen_socket.h"
#include "gpuctld/protocol/timed.h"
#include "gpuctld/protocol/varlink_server.h"
#include "ipc/connection.h"
#include "ipc/testing/pass_along.h"

namespace gpuctl::daemon {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kConnections = 40;  // that a user may have
constexpr char kOnewayText[] = R"({"method":"a.b","oneway":true})";
constexpr std::string_view kOneway(kOnewayText, sizeof kOnewayText);  // with the NUL that ends a message

/// Answers each call with a long text; "Attach" makes the caller a client, "Stream" never ends.
class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    std::string pattern = testing::TempDir() + "session-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    ::chmod(directory_.c_str(), 0711);
    socket_ = directory_ + "/s";
    server_ = std::make_unique<VarlinkServer>(
        context_, listen_at(socket_, 0666, std::nullopt)->release(), budgets_,
        VarlinkServer::Handler{[this](Session& session, const ipc::Call& call) {
                                 served_.push_back(session.peer().uid);
                                 if (call.member() == "Attach") session.trust_as_client();
                                 Answer answer = success({{"text", std::string(1 << 20, 'x')}});
                                 if (call.member() == "Stream") answer.again = std::chrono::hours(1);
                                 return answer;
                               },
                               [this](Session&) { ++closed_; }, [](std::uint32_t) {}});
  }
  ~SessionTest() override {
    server_->stop();
    context_.run();
    std::filesystem::remove_all(directory_);
  }
  static Budget few_connections() {
    Budget budget = kBudgetOfUser;
    budget.connections = kConnections;
    budget.time = {0.25, 10};
    return budget;
  }
  static Budget all_with_time() {
    Budget budget = kBudgetOfAll;
    budget.time = {10, 100};
    return budget;
  }
  /// Of this thread's processor.
  static void work_for(std::chrono::nanoseconds time) {
    const auto until = now_ns(CLOCK_THREAD_CPUTIME_ID) + static_cast<std::uint64_t>(time.count());
    while (now_ns(CLOCK_THREAD_CPUTIME_ID) < until) continue;
  }
  /// Lets the server do what there is to do.
  void settle() {
    for (int i = 0; i < 100; ++i) context_.poll();
  }
  /// Of a user with a budget.
  ipc::Connection connect(std::uint32_t uid = 65534, const std::string& path = {}) {
    EXPECT_EQ(::syscall(SYS_setresuid, -1, uid, -1), 0);
    auto connection = ipc::Connection::open(path.empty() ? socket_ : path);
    EXPECT_EQ(::syscall(SYS_setresuid, -1, 0, -1), 0);
    settle();
    return std::move(connection.value());
  }
  void send(const ipc::Connection& connection, std::string_view bytes) {
    EXPECT_EQ(::send(connection.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    settle();
  }
  /// Calls, and reads the reply so that nothing of it waits in the server.
  void call(ipc::Connection& connection, const char* method, bool more = false) {
    ASSERT_TRUE(connection.send({.method = method, .parameters = {}, .more = more}));
    for (auto reply = connection.receive(0ms);; reply = connection.receive(0ms)) {
      settle();
      if (reply) return;
    }
  }
  /// How many connections are closed when so much time has passed.
  int closed_after(std::chrono::seconds time) {
    settle();
    server_->check_patience(now_ns() + static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count()));
    settle();
    return closed_;
  }

  boost::asio::io_context context_{1};
  UserBudgets budgets_{1, few_connections(), all_with_time()};
  std::string directory_, socket_;
  std::unique_ptr<VarlinkServer> server_;
  int closed_ = 0;
  std::vector<std::uint32_t> served_;  ///< whose calls, in this order
};

TEST_F(SessionTest, AnotherServerGoesOnWithTheConnections) {
  constexpr std::string_view kCall("{\"method\":\"a.b\"}", 17);  // with its NUL
  std::vector<ipc::Connection> peers;
  for (int i = 0; i < 3; ++i) peers.push_back(std::move(ipc::Connection::open(socket_).value()));
  settle();
  ipc::Connection &unread = peers[0], &half = peers[1], &reads_late = peers[2];
  send(half, kCall.substr(0, 9));
  send(reads_late, kCall);  // the reply is longer than the socket's buffer
  ASSERT_EQ(::send(unread.fd(), kCall.data(), kCall.size(), MSG_NOSIGNAL), 17);

  UserBudgets budgets(1, few_connections());
  VarlinkServer other(context_, listen_at(directory_ + "/other", 0666, std::nullopt)->release(), budgets,
                      {[](Session&, const ipc::Call&) {
                         return success({{"text", "other"}});
                       },
                       [](Session&) {}, [](std::uint32_t) {}});
  other.adopt(server_->hand_over());
  EXPECT_EQ(closed_, 3);
  EXPECT_EQ(server_->connections(), 0u);
  EXPECT_EQ(other.connections(), 3u);
  settle();
  const auto reply = [this](ipc::Connection& peer) {
    for (int i = 0; i < 1000; ++i, settle())
      if (auto received = peer.receive(0ms)) return std::string(received->parameters.at("text").as_string());
    return std::string("no reply");
  };
  EXPECT_EQ(reply(unread), "other");
  EXPECT_EQ(reply(reads_late).size(), std::size_t{1} << 20) << "the reply of the first server";
  send(half, kCall.substr(9));
  send(reads_late, kCall);
  EXPECT_EQ(reply(half), "other");
  EXPECT_EQ(reply(reads_late), "other");
  other.stop();
}

/// Nothing is passed to the daemon. To drop it could take as long as the peer likes, so it is not even received.
TEST_F(SessionTest, WhatAPeerPassesIsNotReceived) {
  for (const int flags : {0, static_cast<int>(MSG_OOB)}) {
    const auto peer = std::move(ipc::Connection::open(socket_).value());
    const auto other = std::move(ipc::Connection::open(socket_).value());
    settle();
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe2(pipe.data(), O_NONBLOCK), 0);
    served_.clear(), closed_ = 0;
    send(peer, kOneway);
    EXPECT_EQ(served_.size(), 1u);
    ASSERT_EQ(ipc::pass_along(peer.fd(), kOneway, pipe[1], flags), std::ssize(kOneway));
    ::close(pipe[1]);
    char byte = 0;
    while (::read(pipe[0], &byte, 1) < 0) settle();  // until nobody has the other end any more
    EXPECT_EQ(closed_, 1);
    ::close(pipe[0]);
    EXPECT_EQ(served_.size(), 1u);
    send(other, kOneway);
    EXPECT_EQ(served_.size(), 2u);
  }
}

TEST_F(SessionTest, AMessageThatDoesNotEndEndsItsConnection) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  auto stranger = connect(), client = connect();
  call(client, "a.Attach");
  send(stranger, "{\"method\":");
  send(client, "{\"method\":");
  EXPECT_EQ(closed_after(kPatienceWithinMessage / 2), 0);
  send(stranger, "\"a.b\"");
  EXPECT_EQ(closed_after(kPatienceWithinMessage * 2), 2);
}

TEST_F(SessionTest, AReplyThatNobodyReadsEndsItsConnection) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  auto lazy = connect();
  ASSERT_TRUE(lazy.send({.method = "a.b", .parameters = {}}));
  EXPECT_EQ(closed_after(kPatienceWithinMessage / 2), 0);
  EXPECT_EQ(closed_after(kPatienceWithinMessage * 2), 1);
}

TEST_F(SessionTest, OnlyAStrangerMayNotBeSilent) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  auto stranger = connect(), client = connect(), stream = connect();
  auto root = ipc::Connection::open(socket_);
  ASSERT_TRUE(root);
  call(stranger, "a.b");
  call(client, "a.Attach");
  call(stream, "a.Stream", true);
  EXPECT_EQ(closed_after(kPatienceForCall / 2), 0);
  EXPECT_EQ(closed_after(kPatienceForCall * 2), 1);
  EXPECT_EQ(closed_after(std::chrono::hours(24)), 1);
}

TEST_F(SessionTest, WhoIsInDebtIsNotServedAndNotClosed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  auto user = connect();
  budgets_.charge(65534, 0, 1u << 30, now_ns());
  auto other = connect();
  ASSERT_TRUE(other.send({.method = "a.b", .parameters = {}}));
  settle();
  EXPECT_FALSE(other.receive(0ms));
  EXPECT_EQ(closed_after(std::chrono::hours(1)), 1) << "the first was silent before";
}

TEST_F(SessionTest, WhoHangsUpInDebtIsNotServedToTheEnd) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  budgets_.charge(65534, 100000, 0, now_ns());
  {
    const auto stays = connect(), ends = connect();
    for (const auto* connection : {&stays, &ends}) send(*connection, kOneway);
    ::shutdown(stays.fd(), SHUT_WR);  // it may still wait for replies
    EXPECT_EQ(closed_after(0s), 0);
    ::shutdown(ends.fd(), SHUT_RDWR);
    EXPECT_EQ(closed_after(0s), 1);
  }
  EXPECT_EQ(closed_after(0s), 2);
  EXPECT_EQ(served_.size(), 0u);
}

TEST_F(SessionTest, AStreamWithNothingToTellEndsWithItsPeer) {
  {
    auto listens = std::move(ipc::Connection::open(socket_).value());
    call(listens, "a.Stream", true);
    send(listens, kOneway);  // waits for the end of the stream
    EXPECT_EQ(closed_after(0s), 0);
  }
  EXPECT_EQ(closed_after(0s), 1);
}

/// What a call takes is measured, so few of these are in debt. However long the test takes, nothing is saved up.
TEST_F(SessionTest, CallsThatTakeLongAndAreLeftBehindAreNotServedToTheEnd) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  constexpr std::string_view kTakesLong("{\"method\":\"a.TakesLong\",\"oneway\":true}", 39);
  const std::string path = directory_ + "/takes-long";
  Budget user = few_connections();
  user.time = {.per_second = 1e-6, .burst = 0.05};
  UserBudgets budgets(1, user, all_with_time());
  int served = 0, closed = 0;
  VarlinkServer server(context_, listen_at(path, 0666, std::nullopt)->release(), budgets,
                       {[&](Session&, const ipc::Call&) {
                          ++served;
                          work_for(20ms);
                          return success();
                        },
                        [&](Session&) { ++closed; }, [](std::uint32_t) {}});
  {
    const auto ends = connect(65534, path);
    for (int i = 0; i < 50; ++i)
      ASSERT_EQ(::send(ends.fd(), kTakesLong.data(), kTakesLong.size(), 0), std::ssize(kTakesLong));
  }
  settle();
  server.check_patience(now_ns());
  settle();
  EXPECT_EQ(closed, 1);
  EXPECT_GE(served, 1);
  EXPECT_LT(served, 10);
  server.stop();
  settle();  // what it waited for, while it is there
}

TEST_F(SessionTest, WhoHangsUpWithoutDebtIsServedToTheEnd) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  {
    const auto ends = connect();
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(::send(ends.fd(), kOneway.data(), kOneway.size(), MSG_NOSIGNAL), std::ssize(kOneway));
  }
  server_->check_patience(now_ns());
  EXPECT_EQ(closed_after(0s), 1);
  EXPECT_EQ(served_.size(), 3u);
}

TEST_F(SessionTest, RootWaitsForOneCallOfOthersHoweverManyWait) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  std::vector<ipc::Connection> strangers;
  for (std::size_t i = 0; i < kConnections; ++i) strangers.push_back(connect());
  const auto root = ipc::Connection::open(socket_);
  ASSERT_TRUE(root);
  settle();
  for (const ipc::Connection& stranger : strangers)
    for (int call = 0; call < 5; ++call)
      ASSERT_EQ(::send(stranger.fd(), kOneway.data(), kOneway.size(), 0), static_cast<ssize_t>(kOneway.size()));
  ASSERT_EQ(::send(root->fd(), kOneway.data(), kOneway.size(), 0), static_cast<ssize_t>(kOneway.size()));
  for (int i = 0; i < 1000; ++i) context_.poll();
  EXPECT_EQ(served_.size(), 5 * kConnections + 1);
  EXPECT_LE(std::ranges::find(served_, 0u) - served_.begin(), 2);
}

TEST_F(SessionTest, RepliesThatNobodyReadsTakeNoMoreThanTheirUsersShare) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  std::vector<ipc::Connection> lazy;
  for (std::size_t i = 0; i < kConnections; ++i) {
    lazy.push_back(connect());
    ASSERT_TRUE(lazy.back().send({.method = "a.b", .parameters = {}}));
  }
  // A user who has used up its time waits to be served.
  const std::uint64_t patience = now_ns() + 60'000'000'000;
  while (served_.size() < kConnections && now_ns() < patience) context_.poll();
  ASSERT_EQ(served_.size(), kConnections);
  settle();
  const auto kept = static_cast<std::size_t>(static_cast<int>(kConnections) - closed_);
  EXPECT_LE(kept, kBudgetOfUser.buffered >> 20) << "a reply has 1 MiB";
  EXPECT_GE(kept, (kBudgetOfUser.buffered >> 20) / 2);
}

TEST_F(SessionTest, WhereAllConnectionsAreTakenWhoHasMostGivesUpOneForWhoHasFewer) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  const std::string path = directory_ + "/few";
  Budget all = kBudgetOfAll;
  all.connections = 6;
  UserBudgets budgets(1, few_connections(), all);
  int refused = 0;
  VarlinkServer server(context_, listen_at(path, 0666, std::nullopt)->release(), budgets,
                       {[](Session& session, const ipc::Call& call) {
                          if (call.member() == "Attach") session.trust_as_client();
                          return success();
                        },
                        [](Session&) {}, [&](std::uint32_t) { ++refused; }});
  std::vector<ipc::Connection> hoard;
  for (int i = 0; i < 6; ++i) hoard.push_back(connect(65534, path));
  call(hoard[0], "a.Attach");
  call(hoard[1], "a.Attach");
  std::vector<ipc::Connection> others;
  for (int i = 0; i < 3; ++i) call(others.emplace_back(connect(65533, path)), "a.b");
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(server.connections(), 6u);
  call(hoard[0], "a.b");
  call(hoard[1], "a.b");
  const auto further = connect(65533, path);
  EXPECT_EQ(refused, 1) << "each has three";
  server.stop();
}

TEST_F(SessionTest, RootIsServedWhileTheConnectionsOfOthersAreClosed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  constexpr int kAll = 4 * kConnections;
  std::vector<ipc::Connection> silent;
  for (std::uint32_t i = 0; i < kAll; ++i) silent.push_back(connect(65530 + i % 4));
  const auto root = ipc::Connection::open(socket_);
  ASSERT_TRUE(root);
  settle();
  ASSERT_EQ(::send(root->fd(), kOneway.data(), kOneway.size(), 0), static_cast<ssize_t>(kOneway.size()));
  server_->check_patience(now_ns() + 3'600'000'000'000);
  while (served_.empty() && context_.poll_one() > 0) continue;
  EXPECT_EQ(served_, std::vector<std::uint32_t>{0});
  EXPECT_LT(closed_, kAll / 2);
  settle();
  EXPECT_EQ(closed_, kAll);
}

/// To sleep until the next one may be served costs more than a call.
TEST_F(SessionTest, OfWhoIsInDebtAFewCallsAreServedAfterEachRest) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  constexpr int kCalls = 60;
  const std::string path = directory_ + "/in-debt";
  Budget user = few_connections();
  user.calls = {.per_second = 1000, .burst = 5};
  UserBudgets budgets(1, user, all_with_time());
  int served = 0;
  VarlinkServer server(
      context_, listen_at(path, 0666, std::nullopt)->release(), budgets,
      {[&](Session&, const ipc::Call&) { return ++served, success(); }, [](Session&) {}, [](std::uint32_t) {}});
  const auto user_of_all = connect(65534, path);
  for (int i = 0; i < kCalls; ++i)
    ASSERT_EQ(::send(user_of_all.fd(), kOneway.data(), kOneway.size(), 0), static_cast<ssize_t>(kOneway.size()));
  int steps = 0;
  while (served < kCalls) context_.run_one(), ++steps;
  EXPECT_LT(steps, 3 * kCalls / 2);
  server.stop();
}

/// Between the two somebody waits: for a page that is given up soon.
TEST_F(SessionTest, WhoIsInDebtDoesNotWaitWithTheCallThatGoesWithTheLastOne) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  const std::string path = directory_ + "/goes-with";
  Budget user = few_connections();
  user.calls = {.per_second = 1e-6, .burst = 1};
  UserBudgets budgets(1, user, all_with_time());
  int served = 0;
  VarlinkServer server(context_, listen_at(path, 0666, std::nullopt)->release(), budgets,
                       {[&](Session&, const ipc::Call&) {
                          Answer answer = success();
                          answer.cost = 10;
                          answer.next_within = 1h;
                          ++served;
                          return answer;
                        },
                        [](Session&) {}, [](std::uint32_t) {}});
  const auto connection = connect(65534, path);
  for (int expected : {1, 2, 2}) {
    ASSERT_EQ(::send(connection.fd(), kOneway.data(), kOneway.size(), 0), std::ssize(kOneway));
    settle();
    EXPECT_EQ(served, expected);
  }
  server.stop();
}

TEST_F(SessionTest, OfManyConnectionsNoMoreAreTakenThanUsersMayMake) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  constexpr int kAtOnce = 4, kMany = 12, kRoots = 4;  // and what comes first has room in the queue
  const std::string path = directory_ + "/seldom";
  Budget all = kBudgetOfAll;
  all.connects = {.per_second = 0.001, .burst = kAtOnce};
  UserBudgets budgets(1, few_connections(), all);
  int refused = 0;
  const auto connect_many = [&path](int many, std::uint32_t uid) {
    std::vector<ipc::Connection> there;
    EXPECT_EQ(::syscall(SYS_setresuid, -1, uid, -1), 0);
    for (int i = 0; i < many; ++i) there.push_back(std::move(ipc::Connection::open(path).value()));
    EXPECT_EQ(::syscall(SYS_setresuid, -1, 0, -1), 0);
    return there;
  };
  VarlinkServer server(
      context_, listen_at(path, 0666, std::nullopt)->release(), budgets,
      {[](Session&, const ipc::Call&) { return success(); }, [](Session&) {}, [&](std::uint32_t) { ++refused; }});
  const auto roots = connect_many(kRoots, 0), others = connect_many(kMany, 65534);
  settle();
  const auto more = connect_many(kMany, 65534);
  settle();
  const int taken = refused + static_cast<int>(server.connections());
  EXPECT_GT(taken, kRoots + kAtOnce);
  EXPECT_LE(taken, kRoots + kMany) << "a few are taken in a turn";
  server.stop();
}

/// While the server rests, as there were no descriptors, a connection is closed and it goes on before.
TEST_F(SessionTest, ConnectionsAreWaitedForOnce) {
  /// Of several the least: now and then it looks whose patience is over.
  const auto handlers_of_a_connection = [this] {
    std::size_t least = 100;
    for (int i = 0; i < 3; ++i) {
      settle();
      const auto connection = ipc::Connection::open(socket_);
      std::size_t handlers = 0;
      while (const std::size_t some = context_.poll()) handlers += some;
      least = std::min(least, handlers);
    }
    return least;
  };
  const std::size_t once = handlers_of_a_connection();
  settle();
  for (int i = 0; i < 3; ++i) {
    auto there = std::make_optional(ipc::Connection::open(socket_).value());
    settle();
    const auto waits = ipc::Connection::open(socket_);
    const ipc::UniqueFd next(::dup(STDERR_FILENO));
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit few{static_cast<rlim_t>(next.get()), before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    settle();
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    ASSERT_EQ(server_->connections(), 1u);
    there.reset();
    settle();
    ASSERT_EQ(server_->connections(), 1u) << "that which waited";
    context_.run_for(150ms);  // until the rest is over
  }
  EXPECT_EQ(handlers_of_a_connection(), once);
}

TEST_F(SessionTest, ConnectionsThatAreRefusedHardlyHoldUpRoots) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  constexpr int kRefused = 14;  // so that all wait in the queue
  std::vector<ipc::Connection> strangers;
  for (std::size_t i = 0; i < kConnections; ++i) strangers.push_back(connect());
  ASSERT_EQ(::syscall(SYS_setresuid, -1, 65534, -1), 0);
  for (int i = 0; i < kRefused; ++i) strangers.push_back(std::move(ipc::Connection::open(socket_).value()));
  ASSERT_EQ(::syscall(SYS_setresuid, -1, 0, -1), 0);
  const auto root = ipc::Connection::open(socket_);
  ASSERT_TRUE(root);
  ASSERT_EQ(::send(root->fd(), kOneway.data(), kOneway.size(), 0), static_cast<ssize_t>(kOneway.size()));
  int steps = 0;
  while (served_.empty() && steps < 10 * kRefused && context_.poll_one() > 0) ++steps;
  EXPECT_EQ(served_, std::vector<std::uint32_t>{0});
  EXPECT_LT(steps, kRefused);
}

TEST(Timed, WhatTheLoopDoesForATurnIsChargedToo) {
  Budget user = kBudgetOfUser;
  user.time = {.per_second = 0.05, .burst = 0.005};
  UserBudgets budgets(1, user);
  for (int turn = 0; turn < 1000; ++turn) const Timed timed(budgets, 1000);
  EXPECT_GT(budgets.wait(1000, now_ns()).count(), 0) << "a thousand turns that did nothing";
}

TEST(Timed, WhatWasDoneBeforeItWasKnownForWhomIsChargedToo) {
  Budget user = kBudgetOfUser;
  user.time = {.per_second = 0.05, .burst = 0.005};
  UserBudgets budgets(1, user);
  { const Timed timed(budgets, 1000, Timed::used() - 6'000'000); }
  EXPECT_GT(budgets.wait(1000, now_ns()).count(), 0);
}

}  // namespace
}  // namespace gpuctl::daemon
