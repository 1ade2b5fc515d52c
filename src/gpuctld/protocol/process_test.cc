#include "gpuctld/protocol/process.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gpuctld/protocol/peer.h"

namespace gpuctl::daemon {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kUser = 1000, kOther = 2000;

/// A /proc with process 77 of kUser, which started at 500.
class Process : public testing::Test {
 protected:
  Process() {
    std::string pattern = testing::TempDir() + "gpuctld-proc-XXXXXX";
    proc_ = ::mkdtemp(pattern.data());
    become(500, kUser);
  }
  ~Process() override { fs::remove_all(proc_); }

  /// Process 77 is now one that started then.
  void become(std::uint64_t start, std::uint32_t real, std::uint32_t effective, std::uint32_t saved) const {
    fs::create_directories(proc_ / "77/task/77");
    std::ofstream stat(proc_ / "77/task/77/stat");
    stat << "77 (a) b) S";
    for (int field = 4; field < 22; ++field) stat << " " << field;
    stat << " " << start << " 23\n";
    std::ofstream(proc_ / "77" / "status")
        << "Name:\ta) b\nUid:\t" << real << "\t" << effective << "\t" << saved << "\t" << effective << "\n";
  }
  void become(std::uint64_t start, std::uint32_t user) const { become(start, user, user, user); }

  /// `meanwhile` happens while the pidfd is opened.
  bool opened(
      const ProcessIdentity& process, const std::function<void()>& meanwhile = [] {}) const {
    return static_cast<bool>(pidfd_of(process, proc_, [&](std::int32_t) {
      meanwhile();
      return ipc::UniqueFd(::dup(STDERR_FILENO));
    }));
  }

  const ProcessIdentity it_{77, 500, kUser};
  fs::path proc_;
};

TEST_F(Process, IsReadFromItsFiles) {
  EXPECT_EQ(start_of(77, proc_), 500u);
  become(500, 1, 2, 3);
  const auto users = users_of(77, proc_);
  ASSERT_TRUE(users);
  EXPECT_EQ(users->real, 1u);
  EXPECT_EQ(users->effective, 2u);
  EXPECT_EQ(users->saved, 3u);
  EXPECT_EQ(start_of(78, proc_), 0u);
  EXPECT_FALSE(users_of(78, proc_));
}

TEST_F(Process, IsInACgroupOfVersion2) {
  EXPECT_EQ(unified_cgroup_of(it_, proc_), "");
  std::ofstream(proc_ / "77/cgroup") << "1:name=systemd:/a.slice/x.service\n0::/b.slice/y.service\n";
  EXPECT_EQ(unified_cgroup_of(it_, proc_), "/b.slice/y.service");
  EXPECT_EQ(unified_cgroup_of({77, 501, kUser}, proc_), "") << "another process";
  EXPECT_EQ(unified_cgroup_of({77, 0, kUser}, proc_), "") << "it is not known which process";
  std::ofstream(proc_ / "77/cgroup") << "1:name=systemd:/a.slice/x.service\n";
  EXPECT_EQ(unified_cgroup_of(it_, proc_), "") << "the tree of version 1 is another one";
}

TEST_F(Process, APidfdIsOfThatProcessAlone) {
  EXPECT_TRUE(opened(it_));
  EXPECT_FALSE(opened({77, 499, kUser}));   // it has the number of one that is gone
  EXPECT_FALSE(opened({77, 500, kOther}));  // it is another user's
  EXPECT_FALSE(opened({78, 500, kUser}));
  EXPECT_FALSE(opened({77, 0, kUser}));
}

TEST_F(Process, ANumberThatIsUsedAgainWhileItIsOpenedIsNoticed) {
  EXPECT_FALSE(opened(it_, [&] { become(501, kUser); }));
  become(500, kUser);
  EXPECT_FALSE(opened(it_, [&] { become(500, kOther); }));
  become(500, kUser);
  EXPECT_FALSE(opened(it_, [&] { fs::remove_all(proc_ / "77"); }));
}

TEST_F(Process, SignalsGoByTheRuleOfKill) {
  EXPECT_EQ(may_signal(it_, proc_), MaySignal::yes);
  become(500, kUser, 0, 0);  // a set-uid program that the user started
  EXPECT_EQ(may_signal(it_, proc_), MaySignal::yes);
  become(500, 0, 0, 0);  // it became root altogether
  EXPECT_EQ(may_signal(it_, proc_), MaySignal::no);
  become(500, kOther);
  EXPECT_EQ(may_signal(it_, proc_), MaySignal::no);
  EXPECT_EQ(may_signal({77, 500, 0}, proc_), MaySignal::yes);
  EXPECT_EQ(may_signal({77, 499, 0}, proc_), MaySignal::gone);
  fs::remove_all(proc_ / "77");
  EXPECT_EQ(may_signal(it_, proc_), MaySignal::gone);
}

TEST(Peer, IsThisProcess) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Peer peer = peer_of(ends[0]);
  EXPECT_EQ(peer.pid, ::getpid());
  EXPECT_EQ(peer.start, start_of(::getpid()));
  EXPECT_TRUE(peer_pidfd(ends[0], peer));
  EXPECT_TRUE(pidfd_of({peer.pid, peer.start, peer.uid}));
  EXPECT_EQ(may_signal({peer.pid, peer.start, peer.uid}), MaySignal::yes);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace gpuctl::daemon
