#include "gpuctld/protocol/listen_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "ipc/connection.h"

namespace gpuctl::daemon {
namespace {

namespace fs = std::filesystem;

class ListenSocket : public testing::Test {
 protected:
  ListenSocket() {
    std::string pattern = testing::TempDir() + "listen-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    path_ = directory_ / "s";
  }
  ~ListenSocket() override { fs::remove_all(directory_); }

  Result<ipc::UniqueFd> listen() const { return listen_at(path_, 0600, std::nullopt); }
  bool is_served() const { return static_cast<bool>(ipc::Connection::open(path_)); }

  fs::path directory_;
  std::string path_;
};

/// Each finds the socket of a dead daemon, and takes it for one that it may remove.
TEST_F(ListenSocket, OneOfManyDaemonsThatBeginAtOnceGetsThePath) {
  for (int round = 0; round < 50; ++round) {
    (void)listen();  // a dead daemon's
    int begin[2], end[2];
    ASSERT_EQ(::pipe(begin), 0);
    ASSERT_EQ(::pipe(end), 0);
    std::vector<pid_t> daemons;
    for (int i = 0; i < 4; ++i) {
      daemons.push_back(::fork());
      if (daemons.back() != 0) continue;
      char go = 0;
      ::close(end[1]);
      (void)!::read(begin[0], &go, 1);
      const auto listener = listen();
      if (listener) (void)!::read(end[0], &go, 1);
      ::_exit(listener ? 0 : 1);
    }
    ASSERT_EQ(::write(begin[1], "xxxx", 4), 4);
    int refused = 0, status = 0;
    while (refused < 3 && ::waitpid(-1, &status, 0) > 0) ++refused;
    EXPECT_TRUE(is_served()) << "round " << round;
    ::close(end[1]);
    while (::waitpid(-1, &status, 0) > 0) EXPECT_EQ(status, 0);
    for (const int fd : {begin[0], begin[1], end[0]}) ::close(fd);
  }
}

/// As the child of a daemon that is killed before the child has begun to run another program.
TEST_F(ListenSocket, WhoHasTheSocketOfADeadDaemonForAMomentIsNoDaemon) {
  const pid_t daemon = ::fork();
  if (daemon == 0) {
    const auto listener = listen();
    ASSERT_TRUE(listener);
    if (::fork() != 0) ::_exit(0);
    ::fcntl(listener->get(), F_SETFL, 0);
    (void)::accept(listener->get(), nullptr, nullptr);  // until somebody has looked whether a daemon listens
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(daemon, nullptr, 0), daemon);
  const auto next = listen();
  EXPECT_TRUE(next) << next.error().message;
}

TEST_F(ListenSocket, ADaemonLeavesNothing) {
  const auto listener = listen();
  ASSERT_TRUE(listener);
  { const SocketFile own(path_); }
  EXPECT_TRUE(fs::is_empty(directory_));
}

TEST_F(ListenSocket, TheSocketOfTheNextDaemonStays) {
  std::optional<ipc::UniqueFd> next;
  {
    auto first = listen();
    ASSERT_TRUE(first);
    const SocketFile own(path_);
    first->reset();
    auto second = listen();
    ASSERT_TRUE(second);
    next = std::move(*second);
  }
  EXPECT_TRUE(is_served());
}

}  // namespace
}  // namespace gpuctl::daemon
