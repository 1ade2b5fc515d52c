#include "base/read_write.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <csignal>
#include <string>
#include <thread>

namespace gpuctl {
namespace {

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0); }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  void close_end(int end) {
    if (ends[end] >= 0) ::close(std::exchange(ends[end], -1));
  }
  void do_not_block(int end) const { ::fcntl(ends[end], F_SETFL, O_NONBLOCK); }
  int ends[2] = {-1, -1};
};

/// More than a pipe holds, so that writing takes several calls.
std::string long_text() {
  std::string text(1 << 20, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 2654435761u >> 24);
  return text;
}

/// Interrupts the system calls of a thread, until it goes.
class Interrupter {
 public:
  explicit Interrupter(pthread_t whom) {
    struct sigaction action {};
    action.sa_handler = [](int) {};          // without SA_RESTART
    ::sigaction(SIGUSR1, &action, nullptr);  // for good: a signal may come late
    thread_ = std::thread([this, whom] {
      while (!over_) ::pthread_kill(whom, SIGUSR1), std::this_thread::yield();
    });
  }
  ~Interrupter() {
    over_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

TEST(ReadWrite, AllIsWrittenAndReadWhateverInterrupts) {
  for (const bool blocks : {true, false}) {
    Pipe pipe;
    if (!blocks) pipe.do_not_block(1);
    const std::string text = long_text();
    std::string read;
    std::thread reader([&] {
      EXPECT_EQ(read_pieces(pipe.ends[0], [&](std::string_view piece) { return read += piece, true; }), ReadEnd::end);
    });
    {
      const Interrupter of_writer(::pthread_self()), of_reader(reader.native_handle());
      EXPECT_TRUE(write_all(pipe.ends[1], text));
    }
    pipe.close_end(1);
    reader.join();
    EXPECT_TRUE(read == text) << read.size();
  }
}

TEST(ReadWrite, ExactlySoManyBytesOrNone) {
  Pipe pipe;
  char bytes[4] = {};
  ASSERT_TRUE(write_all(pipe.ends[1], "abcdef"));
  EXPECT_TRUE(read_exactly(pipe.ends[0], bytes, 4));
  EXPECT_EQ(std::string_view(bytes, 4), "abcd");
  pipe.close_end(1);
  EXPECT_FALSE(read_exactly(pipe.ends[0], bytes, 4)) << "two are left";
}

TEST(ReadWrite, SaysWhyReadingEnds) {
  Pipe pipe;
  pipe.do_not_block(0);
  const auto take = [](std::string_view) { return true; };
  EXPECT_EQ(read_pieces(pipe.ends[0], take), ReadEnd::later);
  ASSERT_TRUE(write_all(pipe.ends[1], "a"));
  EXPECT_EQ(read_pieces(pipe.ends[0], [](std::string_view piece) { return piece != "a"; }), ReadEnd::stopped);
  pipe.close_end(1);
  EXPECT_EQ(read_pieces(pipe.ends[0], take), ReadEnd::end);
  EXPECT_EQ(read_pieces(-1, take), ReadEnd::failed);
  EXPECT_EQ(errno, EBADF);
}

TEST(ReadWrite, SaysWhyNotAllIsWritten) {
  EXPECT_TRUE(write_all(-1, ""));
  EXPECT_FALSE(write_all(-1, "a"));
  EXPECT_EQ(errno, EBADF);
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  EXPECT_FALSE(write_all(full, "a"));
  EXPECT_EQ(errno, ENOSPC);
  ::close(full);
}

}  // namespace
}  // namespace gpuctl
