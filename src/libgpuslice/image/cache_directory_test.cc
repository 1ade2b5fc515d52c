#include "libgpuslice/image/cache_directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

namespace gpuslice {
namespace {

namespace fs = std::filesystem;

constexpr char kKind[] = ".test";

class CacheDirectoryTest : public testing::Test {
 protected:
  CacheDirectoryTest() {
    char name[] = "/tmp/gpuctl-cache-test.XXXXXX";
    scratch_ = mkdtemp(name);
    path_ = scratch_ / "home/.cache/gpuctl";
  }
  ~CacheDirectoryTest() override { fs::remove_all(scratch_); }

  std::set<fs::path> files() const {
    std::set<fs::path> found;
    for (const auto& entry : fs::directory_iterator(path_)) found.insert(entry.path());
    return found;
  }

  fs::path scratch_, path_;
  const ContentHash key_ = content_hash("what it is about");
};

TEST(ContentHash, TellsContentsApart) {
  std::set<std::string> names;
  std::string text;
  for (int length = 0; length < 100; ++length) {
    names.insert(to_text(content_hash(text)));
    names.insert(to_text(content_hash(text, 1)));
    text += '\0';  // only zeros, so the length must count
  }
  for (std::size_t byte = 0; byte < text.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = text;
      other[byte] = static_cast<char>(1 << bit);
      names.insert(to_text(content_hash(other)));
    }
  }
  EXPECT_EQ(names.size(), 200u + 800u);
}

TEST(ContentHash, IsTheOneOfXxh3) {
  EXPECT_EQ(to_text(content_hash("")), "99aa06d3014798d86001c324468d497f");
}

TEST_F(CacheDirectoryTest, FindsWhatWasKept) {
  const CacheDirectory cache(path_);
  EXPECT_FALSE(cache.get(key_, kKind));
  EXPECT_TRUE(cache.put(key_, kKind, "first"));
  EXPECT_TRUE(cache.put(key_, kKind, std::string("sec\0nd", 6)));
  EXPECT_EQ(cache.get(key_, kKind), std::string("sec\0nd", 6));
  EXPECT_FALSE(cache.get(key_, ".other"));
  EXPECT_FALSE(cache.get(content_hash("something else"), kKind));
  cache.put(key_, ".other", "");
  EXPECT_EQ(cache.get(key_, ".other"), "");
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(CacheDirectoryTest, IsPrivate) {
  const CacheDirectory cache(path_);
  const mode_t mask = umask(0);
  cache.put(key_, kKind, "body");
  umask(mask);
  struct stat about;
  ASSERT_EQ(stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0700u);
  ASSERT_EQ(stat(files().begin()->c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST_F(CacheDirectoryTest, UsesNoDirectoryOthersMayEnter) {
  const CacheDirectory cache(path_);
  cache.put(key_, kKind, "body");
  for (const mode_t mode : {0770, 0701, 0755}) {
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    EXPECT_FALSE(cache.get(key_, kKind)) << std::oct << mode;
    cache.put(content_hash("more"), kKind, "body");
    EXPECT_EQ(files().size(), 1u);
  }
  ASSERT_EQ(chmod(path_.c_str(), 0700), 0);
  EXPECT_TRUE(cache.get(key_, kKind));
}

TEST_F(CacheDirectoryTest, UsesNobodyElsesDirectory) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  const CacheDirectory cache(path_);
  cache.put(key_, kKind, "body");
  ASSERT_EQ(chown(path_.c_str(), 1, 1), 0);
  EXPECT_FALSE(cache.get(key_, kKind));
  ASSERT_EQ(chown(path_.c_str(), 0, 0), 0);
  EXPECT_TRUE(cache.get(key_, kKind));
}

TEST_F(CacheDirectoryTest, DamagedFilesAreAbsent) {
  const CacheDirectory cache(path_);
  const std::string body(1000, 'x');
  cache.put(key_, kKind, body);
  const fs::path file = *files().begin();
  const auto size = static_cast<std::size_t>(fs::file_size(file));
  for (std::size_t at = 0; at < size; ++at) {
    std::fstream change(file, std::ios::in | std::ios::out | std::ios::binary);
    change.seekg(static_cast<std::streamoff>(at));
    const char was = static_cast<char>(change.get());
    change.seekp(static_cast<std::streamoff>(at));
    change.put(static_cast<char>(was ^ 0x10));
    change.close();
    EXPECT_FALSE(cache.get(key_, kKind)) << "byte " << at;
    std::fstream repair(file, std::ios::in | std::ios::out | std::ios::binary);
    repair.seekp(static_cast<std::streamoff>(at));
    repair.put(was);
  }
  EXPECT_EQ(cache.get(key_, kKind), body);
  fs::resize_file(file, size - 1);
  EXPECT_FALSE(cache.get(key_, kKind));
  fs::resize_file(file, 10);
  EXPECT_FALSE(cache.get(key_, kKind));
  cache.put(key_, kKind, body);
  EXPECT_EQ(cache.get(key_, kKind), body);
}

TEST_F(CacheDirectoryTest, FollowsNoLink) {
  const CacheDirectory cache(path_);
  cache.put(key_, kKind, "body");
  const fs::path file = *files().begin();
  fs::rename(file, scratch_ / "elsewhere");
  fs::create_symlink(scratch_ / "elsewhere", file);
  EXPECT_FALSE(cache.get(key_, kKind));
}

/// A directory of the user's own, to which somebody else made a link.
TEST_F(CacheDirectoryTest, IsNoLink) {
  const fs::path precious = scratch_ / "precious";
  fs::create_directory(precious);
  fs::permissions(precious, fs::perms::owner_all);
  std::ofstream(precious / "thesis") << std::string(1000, 'x');
  fs::create_directories(path_.parent_path());
  fs::create_directory_symlink(precious, path_);
  const CacheDirectory cache(path_, 100);
  EXPECT_FALSE(cache.put(key_, kKind, "body"));
  { const CacheDirectory::Turn turn = cache.take_turn(key_); }
  EXPECT_EQ(std::distance(fs::directory_iterator(precious), {}), 1);
}

TEST_F(CacheDirectoryTest, RemovesNothingThatItDidNotMake) {
  const CacheDirectory cache(path_, 1000);
  ASSERT_TRUE(cache.put(key_, kKind, "body"));
  for (const char* name :
       {"thesis", "0123456789abcdef", "0123456789abcdef0123456789abcdefg", "X123456789abcdef0123456789abcdef.test"})
    std::ofstream(path_ / name) << std::string(1000, 'x');
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(cache.put(content_hash(std::to_string(i)), kKind, std::string(200, 'y')));
  for (const char* name :
       {"thesis", "0123456789abcdef", "0123456789abcdef0123456789abcdefg", "X123456789abcdef0123456789abcdef.test"})
    EXPECT_TRUE(fs::exists(path_ / name)) << name;
  EXPECT_LT(files().size(), 4u + 8u);
}

TEST_F(CacheDirectoryTest, TheLongestUnusedGo) {
  const CacheDirectory cache(path_, 10'000);
  const std::string body(2000, 'x');
  const auto key = [](int i) { return content_hash(std::to_string(i)); };
  for (int i = 0; i < 4; ++i) {
    cache.put(key(i), kKind, body);
    usleep(20'000);  // the file system's clock may tick every 4 ms
  }
  EXPECT_TRUE(cache.get(key(0), kKind));  // used now, so it goes after 1, 2 and 3
  usleep(20'000);
  cache.put(key(4), kKind, body);
  EXPECT_TRUE(cache.get(key(0), kKind));
  EXPECT_FALSE(cache.get(key(1), kKind));
  EXPECT_FALSE(cache.get(key(2), kKind));
  EXPECT_TRUE(cache.get(key(4), kKind));
  EXPECT_FALSE(cache.put(key(5), kKind, std::string(5000, 'x')));  // more than a quarter of the most bytes
  EXPECT_FALSE(cache.get(key(5), kKind));
}

TEST_F(CacheDirectoryTest, WhatWritersThatDiedLeaveGoes) {
  const CacheDirectory cache(path_);
  cache.put(key_, kKind, "body");
  const fs::path old = path_ / "unfinished.1.1", fresh = path_ / "unfinished.1.2";
  std::ofstream(old) << "x";
  std::ofstream(fresh) << "x";
  const timespec times[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, old.c_str(), times, 0), 0);
  cache.put(content_hash("more"), kKind, "body");
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(fresh));
}

TEST_F(CacheDirectoryTest, NoDirectoryKeepsNothing) {
  const CacheDirectory none("");
  EXPECT_FALSE(none.put(key_, kKind, "body"));
  EXPECT_FALSE(none.get(key_, kKind));
  std::ofstream(scratch_ / "file") << "x";
  const CacheDirectory impossible(scratch_ / "file/gpuctl");
  EXPECT_FALSE(impossible.put(key_, kKind, "body"));
  EXPECT_FALSE(impossible.get(key_, kKind));
}

// Readers see whole bodies, whatever writers in threads and processes, and the size limit, do at the same time.
TEST_F(CacheDirectoryTest, ManyAtOnce) {
  const auto body = [](int i) {
    return std::string(static_cast<std::size_t>(1000 + 37 * i), static_cast<char>('a' + i));
  };
  const auto work = [&](int seed) {
    const CacheDirectory cache(path_, 40'000);
    int wrong = 0;
    for (int round = 0; round < 500; ++round) {
      const int i = (round * 7 + seed) % 20;
      const ContentHash key = content_hash(std::to_string(i));
      const std::optional<std::string> found = cache.get(key, kKind);
      if (found && *found != body(i)) ++wrong;
      if (!found || round % 10 == 0) cache.put(key, kKind, body(i));
    }
    return wrong;
  };
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(work(3) == 0 ? 0 : 1);
  int wrong = 0;
  std::thread other([&] { wrong = work(1); });
  EXPECT_EQ(work(2), 0);
  other.join();
  EXPECT_EQ(wrong, 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace gpuslice
