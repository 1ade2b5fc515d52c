// The terminal while `top` owns it: alternate screen, keys as they are pressed, everything put back at the end.
#pragma once

#include <termios.h>

#include <cstddef>
#include <string>
#include <vector>

#include "ipc/unique_fd.h"

namespace gpuctl::cli {

/// One per process. Restores the terminal when it goes, also when the program is stopped by SIGINT, SIGTERM or SIGHUP,
/// which are blocked meanwhile and turn into Event::quit.
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

  /// Replaces the screen by `lines` in one write, so that nothing flickers.
  void draw(const std::vector<std::string>& lines);

  enum class Event { data, redraw, quit };
  /// Sleeps until `fd` is readable (data), the window changed its size (redraw), or the user wants to leave (quit).
  Event wait(int fd);

 private:
  ipc::UniqueFd signals_;
  termios saved_{};
  bool keyboard_ = false;  ///< standard input is a terminal and in our mode
};

}  // namespace gpuctl::cli
