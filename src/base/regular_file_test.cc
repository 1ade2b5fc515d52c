#include "base/regular_file.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace gpuctl {
namespace {

class RegularFileTest : public testing::Test {
 protected:
  RegularFileTest() {
    std::string pattern = testing::TempDir() + "regular-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    path_ = directory_ + "/f";
    ::alarm(60);  // rather than wait for ever
  }
  ~RegularFileTest() override {
    ::alarm(0);
    std::filesystem::remove_all(directory_);
  }
  std::string error(const std::string& path, std::size_t most = 100) const {
    const auto text = read_regular_file(path, most);
    return text ? "read" : text.error().message;
  }

  std::string directory_, path_;
};

TEST_F(RegularFileTest, IsReadUpToItsBound) {
  std::ofstream(path_) << "12345";
  EXPECT_EQ(*read_regular_file(path_, 5), "12345");
  EXPECT_EQ(error(path_, 4), path_ + ": is longer than 4 bytes");
  std::filesystem::create_symlink(path_, path_ + ".link");
  EXPECT_EQ(*read_regular_file(path_ + ".link", 5), "12345");
  EXPECT_EQ(RegularFile(path_ + ".link", O_NOFOLLOW).opened().error().message,
            path_ + ".link: is a symbolic link, not a regular file");
}

TEST_F(RegularFileTest, NothingElseIs) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(error(path_), path_ + ": is not a regular file");
  EXPECT_EQ(error("/dev/zero"), "/dev/zero: is not a regular file");
  EXPECT_EQ(error(directory_), directory_ + ": is not a regular file");
  EXPECT_EQ(error(directory_ + "/none"), directory_ + "/none: cannot be read: No such file or directory");
  EXPECT_TRUE(RegularFile(directory_ + "/none").missing());
  EXPECT_FALSE(RegularFile(path_).missing());

  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string name = directory_ + "/s";
  name.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(error(name), name + ": is not a regular file");
  ::close(socket);
}

}  // namespace
}  // namespace gpuctl
