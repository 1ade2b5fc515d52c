#include "ipc/connection.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>

namespace gpuctl::ipc::connection_test {
namespace {

using namespace std::chrono_literals;
using std::string_literals::operator""s;

/// A connection and the raw other end.
struct Pair {
  Pair() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    ours = Connection(UniqueFd(fds[0]));
    peer = UniqueFd(fds[1]);
  }
  void write(std::string_view bytes) {
    ASSERT_EQ(::write(peer.get(), bytes.data(), bytes.size()), ssize_t(bytes.size()));
  }
  std::string read_message() {
    std::string message;
    for (char c; ::read(peer.get(), &c, 1) == 1 && c != '\0';) message += c;
    return message;
  }
  Connection ours{UniqueFd()};
  UniqueFd peer;
};

Call get_status() {
  return Call{"io.gpuctl.GetStatus", {}, false, false};
}

TEST(Connection, CallAndReply) {
  Pair pair;
  pair.write("{\"parameters\":{\"clients\":3}}\0"s);
  const Result<Reply> reply = pair.ours.call(get_status());
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->parameters.at("clients"), 3);
  EXPECT_EQ(pair.read_message(), R"({"method":"io.gpuctl.GetStatus"})");
}

TEST(Connection, ErrorRepliesAreReplies) {
  Pair pair;
  pair.write("{\"error\":\"io.gpuctl.NotAttached\"}\0"s);
  const Result<Reply> reply = pair.ours.call(get_status());
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->error, "io.gpuctl.NotAttached");
}

TEST(Connection, StreamOfReplies) {
  Pair pair;
  pair.write("{\"continues\":true}\0{\"continues\":true}\0{}\0"s);
  EXPECT_TRUE(pair.ours.call(get_status())->continues);
  EXPECT_TRUE(pair.ours.reply_waiting());
  EXPECT_TRUE(pair.ours.receive()->continues);
  EXPECT_FALSE(pair.ours.receive()->continues);
  EXPECT_FALSE(pair.ours.reply_waiting());
}

TEST(Connection, OnewayDoesNotWait) {
  Pair pair;
  EXPECT_TRUE(pair.ours.call(Call{"io.gpuctl.ReportKernels", {}, false, true}));
  EXPECT_EQ(pair.read_message(), R"({"method":"io.gpuctl.ReportKernels","oneway":true})");
}

TEST(Connection, TimesOutAndCanBeAskedAgain) {
  Pair pair;
  EXPECT_EQ(pair.ours.receive(20ms).error().message, "no answer in time");
  pair.write("{}\0"s);
  EXPECT_TRUE(pair.ours.receive(20ms));
}

TEST(Connection, ALateAnswerIsNotThatToTheNextCall) {
  Pair pair;
  EXPECT_EQ(pair.ours.call(get_status(), 20ms).error().message, "no answer in time");
  (void)::send(pair.peer.get(), "{}", 3, MSG_NOSIGNAL);
  const Result<Reply> next = pair.ours.call(get_status(), 20ms);
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().message, "the connection is closed, as a call had no answer");
}

TEST(Connection, PeerGoesAway) {
  Pair pair;
  pair.write("{\"parame");
  pair.peer.reset();
  EXPECT_EQ(pair.ours.receive().error().message, "the peer closed the connection");
  EXPECT_EQ(pair.ours.send(get_status()).error().message, "the peer closed the connection");  // and no SIGPIPE
}

TEST(Connection, GarbageIsRefused) {
  Pair pair;
  pair.write("\x01\x02 what\0"s);
  EXPECT_NE(pair.ours.receive().error().message.find("not valid JSON"), std::string::npos);
}

TEST(Connection, OversizedReplyIsRefused) {
  Pair pair;
  std::thread peer([&] {
    const std::string chunk(1 << 16, 'x');
    while (::send(pair.peer.get(), chunk.data(), chunk.size(), MSG_NOSIGNAL) > 0) {
    }
  });
  const Result<Reply> reply = pair.ours.receive();
  pair.ours = Connection(UniqueFd());
  peer.join();
  EXPECT_EQ(reply.error().message, "message longer than " + std::to_string(kMaxMessageBytes) + " bytes");
}

TEST(Connection, OversizedCallIsNotSent) {
  Pair pair;
  Call call = get_status();
  call.parameters["x"] = std::string(kMaxMessageBytes, 'x');
  EXPECT_FALSE(pair.ours.send(call));
}

TEST(Connection, LongMessagesPassInBothDirections) {
  Pair pair;
  Call call = get_status();
  call.parameters["x"] = std::string(1 << 20, 'x');  // much more than a socket buffer
  std::thread peer([&] {
    const std::string message = pair.read_message();
    pair.write("{\"parameters\":{\"bytes\":" + std::to_string(message.size()) + ",\"x\":\"" +
               std::string(1 << 20, 'y') + "\"}}\0"s);
  });
  const Result<Reply> reply = pair.ours.call(call);
  peer.join();
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->parameters.at("bytes"), std::int64_t(encode(call).size() - 1));
}

TEST(Connection, SendTimesOutWhenThePeerDoesNotRead) {
  Pair pair;
  Call call = get_status();
  call.parameters["x"] = std::string(3 << 20, 'x');
  EXPECT_EQ(pair.ours.send(call, 30ms).error().message, "no answer in time");
}

/// Sends `bytes` with `count` descriptors of /dev/null.
void send_with_fds(int socket, std::string bytes, std::size_t count) {
  std::vector<UniqueFd> files;
  std::vector<char> control(CMSG_SPACE(count * sizeof(int)));
  iovec piece{bytes.data(), bytes.size()};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* c = CMSG_FIRSTHDR(&header);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(count * sizeof(int));
  for (std::size_t i = 0; i < count; ++i) {
    files.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const int fd = files.back().get();
    std::memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(int));
  }
  ASSERT_EQ(::sendmsg(socket, &header, 0), ssize_t(bytes.size()));
}

std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

TEST(Connection, ReceivesDescriptors) {
  Pair pair;
  send_with_fds(pair.peer.get(), "{\"parameters\":{}}\0"s, 2);
  ASSERT_TRUE(pair.ours.receive());
  std::vector<UniqueFd> fds = pair.ours.take_fds();
  ASSERT_EQ(fds.size(), 2u);
  for (const UniqueFd& fd : fds) EXPECT_NE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_TRUE(pair.ours.take_fds().empty());
}

TEST(Connection, SurplusDescriptorsAreClosed) {
  const std::ptrdiff_t before = open_files();
  {
    Pair pair;
    for (int i = 0; i < 3; ++i) {
      send_with_fds(pair.peer.get(), "{}\0"s, 6);
      ASSERT_TRUE(pair.ours.receive());
    }
    EXPECT_EQ(pair.ours.take_fds().size(), kMaxFds);
  }
  EXPECT_EQ(open_files(), before);
}

TEST(Connection, OpenNamesThePathAndTheCause) {
  EXPECT_EQ(Connection::open("/nonexistent/sock").error().message,
            "cannot connect to /nonexistent/sock: No such file or directory (is gpuctld running?); "
            "to start it: gpuctld --socket /nonexistent/sock (without a GPU: --software-gpu)");
  const auto as_installed = Connection::open("/run/gpuctld/io.gpuctl");
  if (!as_installed) {
    EXPECT_NE(as_installed.error().message.find("; to start it: systemctl start gpuctld.socket"), std::string::npos);
  }
  EXPECT_EQ(Connection::open("").error().message, "the path of the socket is empty");
  EXPECT_NE(Connection::open(std::string(200, 'x')).error().message.find("longer than 107 bytes"), std::string::npos);
}

TEST(Connection, WhatIsNoSocketIsCalledSo) {
  char directory[] = "/tmp/gpuctl-ipc-XXXXXX";
  ASSERT_NE(::mkdtemp(directory), nullptr);
  const std::string file = std::string(directory) + "/file";
  ASSERT_TRUE(UniqueFd(::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)));
  EXPECT_EQ(Connection::open(directory).error().message,
            "cannot connect to " + std::string(directory) + ": it is not a socket");
  EXPECT_EQ(Connection::open(file).error().message, "cannot connect to " + file + ": it is not a socket");
  std::filesystem::remove_all(directory);
}

/// Or what such a program writes there would come to the daemon.
TEST(Connection, TakesNoPlaceOfWhatAProgramHasClosed) {
  const std::string path = testing::TempDir() + "connection-closed-" + std::to_string(::getpid());
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  const UniqueFd input(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  ::close(STDIN_FILENO);
  const Result<Connection> connection = Connection::open(path);
  EXPECT_EQ(::fcntl(STDIN_FILENO, F_GETFD), -1);
  if (input) ::dup2(input.get(), STDIN_FILENO);
  ASSERT_TRUE(connection);
  EXPECT_GT(connection->fd(), STDERR_FILENO);
  ::unlink(path.c_str());
}

TEST(Connection, OpenConnectsToAListener) {
  char directory[] = "/tmp/gpuctl-ipc-XXXXXX";
  ASSERT_NE(::mkdtemp(directory), nullptr);
  const std::string path = std::string(directory) + "/sock";
  {
    UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(::listen(listener.get(), 0), 0);
    EXPECT_TRUE(Connection::open(path));
    // The backlog is full now: connecting waits, but not for ever.
    std::vector<Connection> waiting;
    Result<Connection> next = Connection::open(path, 30ms);
    while (next && waiting.size() < 20) {
      waiting.push_back(std::move(*next));
      next = Connection::open(path, 30ms);
    }
    ASSERT_FALSE(next);
    EXPECT_EQ(next.error().message, "cannot connect to " + path + ": Connection timed out");
  }
  EXPECT_NE(Connection::open(path).error().message.find("left its socket behind"), std::string::npos);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace gpuctl::ipc::connection_test
