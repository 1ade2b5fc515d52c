#include "gpuctld/host/line_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>

namespace gpuctl::daemon {
namespace {

TEST(LineLog, APipeThatNobodyReadsIsNotWaitedFor) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const int bytes = ::fcntl(ends[1], F_SETPIPE_SZ, 8192);
  ASSERT_GT(bytes, 0);
  LineLog log(ends[1], "d: ");
  for (int i = 0; i < 3 * bytes / 1000; ++i) log.write(std::string(1000, 'x'));
  std::string text(static_cast<std::size_t>(bytes), ' ');
  ASSERT_EQ(::read(ends[0], text.data(), text.size()) % 1004, 0) << "whole lines";
  log.write("more");
  const ssize_t size = ::read(ends[0], text.data(), text.size());
  text.resize(static_cast<std::size_t>(size));
  EXPECT_TRUE(text.starts_with("d: ")) << text;
  EXPECT_TRUE(text.ends_with(" lines were left out, because nobody read the log\nd: more\n")) << text;
  log.write("a name\x1b[31m");
  text.resize(100);
  text.resize(static_cast<std::size_t>(::read(ends[0], text.data(), text.size())));
  EXPECT_EQ(text, "d: a name [31m\n") << "nothing that steers a terminal";
  log.write(std::string(10'000, 'y'));
  text.resize(10'000);
  EXPECT_EQ(::read(ends[0], text.data(), text.size()), PIPE_BUF);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace gpuctl::daemon
