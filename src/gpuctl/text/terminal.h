// The terminal while `top` uses it: alternate screen, keys as they are pressed, everything restored at the end.
#pragma once

#include <termios.h>

#include <cstddef>
#include <string>
#include <vector>

#include "ipc/unique_fd.h"

namespace gpuctl::cli {

/// One per process. The destructor restores the terminal, even if SIGINT, SIGTERM or SIGHUP stops the program: these
/// signals are blocked meanwhile and become Event::quit.
class Terminal {
 public:
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  struct Size {
    std::size_t columns;
    std::size_t lines;
  };
  Size size() const;

  /// Replaces the screen by `lines` in one write, to avoid flicker.
  void draw(const std::vector<std::string>& lines);

  enum class Event { data, redraw, quit, nothing };
  /// Sleeps until `fd` is readable (data), the window has changed its size (redraw), the user quits (quit), or so many
  /// milliseconds are over (nothing; -1: never). `fd` -1: nothing is to be read.
  Event wait(int fd, int most_ms = -1);

 private:
  ipc::UniqueFd signals_;
  termios saved_{};
  bool keyboard_ = false;  ///< standard input is a terminal, in the mode that top sets
};

}  // namespace gpuctl::cli
