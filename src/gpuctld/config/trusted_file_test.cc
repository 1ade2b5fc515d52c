#include "gpuctld/config/trusted_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace gpuctl::daemon {
namespace {

namespace fs = std::filesystem;

class TrustedFile : public testing::Test {
 protected:
  TrustedFile() {
    std::string pattern = testing::TempDir() + "gpuctld-trust-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    file_ = directory_ / "file";
    std::ofstream(file_) << "0123456789";
    fs::permissions(file_, fs::perms::owner_read | fs::perms::owner_write);
  }
  ~TrustedFile() override { fs::remove_all(directory_); }

  Result<std::optional<std::string>> read(Writers writers = Writers::owner, std::size_t most = 100) const {
    return read_trusted_file(file_, writers, ::geteuid(), most);
  }
  std::string refused() const {
    const auto text = read();
    return text ? "" : text.error().message;
  }

  fs::path directory_, file_;
};

TEST_F(TrustedFile, IsReadUpToABound) {
  EXPECT_EQ(read().value(), "0123456789");
  EXPECT_EQ(read(Writers::owner, 10).value(), "0123456789");
  EXPECT_EQ(read(Writers::owner, 9).error().message, file_.string() + ": is longer than 9 bytes");
  fs::remove(file_);
  EXPECT_EQ(read().value(), std::nullopt);
}

TEST_F(TrustedFile, OthersMustNotBeAbleToWrite) {
  fs::permissions(file_, fs::perms::group_write, fs::perm_options::add);
  EXPECT_EQ(refused(), file_.string() + ": other users may write to it, so it is not trusted");
  EXPECT_EQ(read(Writers::all).value(), "0123456789");
  EXPECT_TRUE(check_trusted_directory(directory_, ::geteuid()));
  fs::permissions(directory_, fs::perms::all);
  EXPECT_EQ(check_trusted_directory(directory_, ::geteuid()).error().message,
            directory_.string() + ": other users may write to it, so it is not trusted");
}

TEST_F(TrustedFile, WhatIsNoRegularFileIsRefused) {
  fs::remove(file_);
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_EQ(refused(), file_.string() + ": is not a regular file");
  fs::remove(file_);
  fs::create_symlink("elsewhere", file_);
  EXPECT_EQ(refused(), file_.string() + ": is a symbolic link, not a regular file");
  EXPECT_FALSE(check_trusted_directory(file_, ::geteuid()));
}

TEST_F(TrustedFile, ReadErrorsAreTold) {
  // It is a regular file of this user's, and nothing is mapped at its begin.
  const auto text = read_trusted_file("/proc/self/mem", Writers::owner, ::geteuid(), 100);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().message, "/proc/self/mem: cannot be read: Input/output error");
}

TEST_F(TrustedFile, TheOwnerIsRootOrTheDaemonsUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  constexpr uid_t kStranger = 65534;
  ASSERT_EQ(::chown(file_.c_str(), kStranger, kStranger), 0);
  EXPECT_EQ(refused(), file_.string() + ": belongs to user 65534 and is not trusted");
  EXPECT_TRUE(read_trusted_file(file_, Writers::owner, kStranger, 100));
  const std::string link = directory_ / "link";
  fs::create_directory_symlink(directory_, link);
  EXPECT_TRUE(check_trusted_directory(link, 0));
  ASSERT_EQ(::lchown(link.c_str(), kStranger, kStranger), 0);
  EXPECT_EQ(check_trusted_directory(link, 0).error().message, link + ": belongs to user 65534 and is not trusted");
  ASSERT_EQ(::chown(directory_.c_str(), kStranger, kStranger), 0);
  EXPECT_EQ(check_trusted_directory(directory_, 0).error().message,
            directory_.string() + ": belongs to user 65534 and is not trusted");
}

}  // namespace
}  // namespace gpuctl::daemon
