// Connections that keep the daemon waiting. The clock is an argument; the sockets are real, and everything runs on one
// thread.
#include "gpuctld/protocol/session.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>

#include "gpuctld/clock.h"
#include "gpuctld/protocol/answers.h"
#include "gpuctld/protocol/listen_socket.h"
#include "gpuctld/protocol/varlink_server.h"
#include "ipc/connection.h"

namespace gpuctl::daemon {
namespace {

using namespace std::chrono_literals;

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
        VarlinkServer::Handler{[](Session& session, const ipc::Call& call) {
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
  /// Lets the server do what there is to do.
  void settle() {
    for (int i = 0; i < 100; ++i) context_.poll();
  }
  /// Of a user with a budget.
  ipc::Connection connect() {
    EXPECT_EQ(::syscall(SYS_setresuid, -1, 65534, -1), 0);
    auto connection = ipc::Connection::open(socket_);
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
  UserBudgets budgets_{1};
  std::string directory_, socket_;
  std::unique_ptr<VarlinkServer> server_;
  int closed_ = 0;
};

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

}  // namespace
}  // namespace gpuctl::daemon
