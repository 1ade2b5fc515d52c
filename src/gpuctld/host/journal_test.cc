#include "gpuctld/host/journal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace gpuctl::daemon {
namespace {

/// What the journal has: a socket for datagrams.
class JournalTest : public testing::Test {
 protected:
  JournalTest() {
    std::string pattern = testing::TempDir() + "journal-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    path_ = directory_ + "/socket";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::ranges::copy(path_, address.sun_path);
    receiver_ = ipc::UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(receiver_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0);
    struct stat found {};
    ::fstat(ends_[1], &found);
    stream_ = std::to_string(found.st_dev) + ":" + std::to_string(found.st_ino);
  }
  ~JournalTest() override {
    ::close(ends_[0]);
    ::close(ends_[1]);
    std::filesystem::remove_all(directory_);
  }

  std::string received() {
    std::string text(4096, '\0');
    const ssize_t size = ::recv(receiver_.get(), text.data(), text.size(), 0);
    return size < 0 ? "nothing" : text.substr(0, static_cast<std::size_t>(size));
  }

  std::string directory_, path_, stream_;
  ipc::UniqueFd receiver_;
  int ends_[2] = {-1, -1};
};

TEST_F(JournalTest, TakesALineWithItsFieldsAndNothingThatLooksLikeAnotherField) {
  const auto journal = Journal::of(ends_[1], stream_.c_str(), path_);
  ASSERT_TRUE(journal);
  EXPECT_TRUE(journal->write("slice x is created", {{"MESSAGE_ID", "01"}, {"GPUCTL_COMMAND", "a\nPRIORITY=0"}}));
  EXPECT_EQ(received(),
            "SYSLOG_IDENTIFIER=gpuctld\nMESSAGE=slice x is created\nMESSAGE_ID=01\nGPUCTL_COMMAND=a PRIORITY=0\n");
}

TEST_F(JournalTest, IsNotThereWhereTheDescriptorGoesElsewhereOrNobodyListens) {
  EXPECT_FALSE(Journal::of(ends_[1], "1:2", path_));
  EXPECT_FALSE(Journal::of(ends_[1], stream_.c_str(), path_ + "x"));
  EXPECT_FALSE(Journal::of(-1, stream_.c_str(), path_));
}

TEST_F(JournalTest, WhatItDoesNotTakeAtOnceIsSaid) {
  const auto journal = Journal::of(ends_[1], stream_.c_str(), path_);
  ASSERT_TRUE(journal);
  const std::string line(60000, 'x');
  int taken = 0;
  while (taken < 10000 && journal->write(line, {})) ++taken;  // the socket's buffer is full some time
  EXPECT_LT(taken, 10000);
  EXPECT_GT(taken, 0);
}

}  // namespace
}  // namespace gpuctl::daemon
