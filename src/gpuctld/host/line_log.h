// Lines on a descriptor that others read. Where nobody reads them they are left out: the daemon waits for no reader.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <climits>
#include <cstdint>
#include <string>
#include <utility>

#include "base/one_line.h"

namespace gpuctl::daemon {

class LineLog {
 public:
  LineLog(int fd, std::string before) : fd_(fd), before_(std::move(before)) {}

  void write(const std::string& line) {
    if (left_out_ > 0 && put(std::to_string(left_out_) + " lines were left out, because nobody read the log"))
      left_out_ = 0;
    if (left_out_ > 0 || !put(line)) ++left_out_;
  }

 private:
  /// A pipe that takes anything takes so many bytes at once.
  static constexpr std::size_t kMost = PIPE_BUF;

  bool put(const std::string& line) const {
    const std::string text = (before_ + one_line(line)).substr(0, kMost - 1) + "\n";
    pollfd room{fd_, POLLOUT, 0};
    return ::poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) != 0 &&
           ::write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }

  int fd_;
  std::string before_;
  std::uint64_t left_out_ = 0;
};

}  // namespace gpuctl::daemon
