#include "gpuctld/protocol/let_go.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/testing/pass_along.h"

namespace gpuctl::daemon {
namespace {

/// A TCP connection whose last close waits for its other end, which reads nothing.
class Lingers {
 public:
  Lingers() {
    const ipc::UniqueFd listener(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener.get(), any, size), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener.get(), any, &size), 0);
    socket_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    static_cast<void>(::connect(socket_.get(), any, size));
    other_.reset(::accept(listener.get(), nullptr, nullptr));
    const std::string much(1 << 16, 'x');
    while (::send(socket_.get(), much.data(), much.size(), MSG_NOSIGNAL) > 0) continue;
    const linger until{.l_onoff = 1, .l_linger = 3600};
    EXPECT_EQ(::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &until, sizeof until), 0);
  }
  /// From now on it is only where it is passed to.
  void pass_along(int connection, int flags = 0) {
    EXPECT_EQ(ipc::pass_along(connection, std::string_view("", 1), socket_.get(), flags), 1);
    socket_.reset();
  }
  /// Whether it is open no longer: its other end sees that.
  bool gone() const {
    std::array<char, 1 << 16> buffer;
    ssize_t size = 0;
    while ((size = ::recv(other_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0) continue;
    return size == 0;
  }

 private:
  ipc::UniqueFd socket_, other_;
};

/// Both ends of a connection.
std::array<ipc::UniqueFd, 2> connection() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {ipc::UniqueFd(ends[0]), ipc::UniqueFd(ends[1])};
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

/// This thread would wait for an hour, and the test's time would be over.
TEST(LetGo, WhatWasPassedIsClosedWithoutWaiting) {
  boost::asio::io_context context(1);
  std::vector<std::uint32_t> closed;
  LetGo let_go(context, [&](std::uint32_t uid, std::chrono::nanoseconds took) {
    closed.push_back(uid);
    EXPECT_GT(took.count(), 0) << "its user is charged with what the thread did";
  });
  const std::size_t before = open_descriptors();
  std::vector<ipc::UniqueFd> others;
  {
    std::array<Lingers, 3> passed;
    for (std::uint32_t uid = 0; uid < 3; ++uid) {
      auto [mine, theirs] = connection();
      passed[uid].pass_along(theirs.get());
      let_go.close(std::move(mine), uid);
      others.push_back(std::move(theirs));
    }
    while (closed.size() < 3) context.poll(), context.restart();
    for (const Lingers& one : passed)
      while (!one.gone()) continue;
  }
  EXPECT_EQ(closed, (std::vector<std::uint32_t>{0, 1, 2}));
  others.clear();
  EXPECT_EQ(open_descriptors(), before);
}

TEST(LetGo, OfManyAFewAreClosedInATurn) {
  constexpr std::size_t kMany = 100;
  boost::asio::io_context context(1);
  std::size_t closed = 0;
  LetGo let_go(context, [&](auto, auto) { ++closed; });
  std::vector<ipc::UniqueFd> others;
  for (std::size_t i = 0; i < kMany; ++i) {
    auto [mine, theirs] = connection();
    EXPECT_EQ(ipc::pass_along(theirs.get(), std::string_view("", 1), theirs.get()), 1);
    let_go.close(std::move(mine), 7);
    others.push_back(std::move(theirs));
  }
  std::size_t most = 0;
  for (std::size_t before = 0; closed < kMany; before = closed) {
    context.poll_one(), context.restart();
    most = std::max(most, closed - before);
  }
  EXPECT_LT(most, kMany / 4);
}

/// However much is unread: a thread for each that hangs up would copy the table of descriptors each time.
TEST(LetGo, WhereNothingWasPassedItIsClosedAtOnce) {
  boost::asio::io_context context(1);
  int closed = 0;
  LetGo let_go(context, [&](auto, auto) { ++closed; });
  for (const std::size_t unread : {0, 1, 100'000}) {
    auto [mine, theirs] = connection();
    EXPECT_EQ(::send(theirs.get(), std::string(unread, 'x').data(), unread, 0), static_cast<ssize_t>(unread));
    let_go.close(std::move(mine), 7);
    char byte = 0;
    EXPECT_EQ(::recv(theirs.get(), &byte, 1, MSG_DONTWAIT), 0) << "the peer sees the end";
  }
  EXPECT_EQ(closed, 3);
}

TEST(LetGo, WhatWasPassedBehindOrOutOfBandIsClosedWithoutWaiting) {
  for (const int flags : {0, static_cast<int>(MSG_OOB)}) {
    boost::asio::io_context context(1);
    int closed = 0;
    LetGo let_go(context, [&](auto, auto) { ++closed; });
    Lingers passed;
    auto [mine, theirs] = connection();
    EXPECT_EQ(::send(theirs.get(), std::string(50'000, 'x').data(), 50'000, 0), 50'000);
    passed.pass_along(theirs.get(), flags);
    let_go.close(std::move(mine), 7);
    EXPECT_EQ(closed, 0);
    while (closed == 0) context.poll(), context.restart();
    while (!passed.gone()) continue;
  }
}

TEST(LetGo, ItMayGoBeforeItsConnections) {
  boost::asio::io_context context(1);
  Lingers passed;
  auto [mine, theirs] = connection();
  passed.pass_along(theirs.get());
  {
    LetGo let_go(context, [](auto, auto) { FAIL() << "nobody is told any more"; });
    let_go.close(std::move(mine), 7);
  }
  context.poll();
  while (!passed.gone()) continue;
}

}  // namespace
}  // namespace gpuctl::daemon
