// The terminal while `top` uses it: alternate screen, keys as they are pressed, everything restored at the end.
#pragma once

#include <termios.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "gpuctl/text/keys.h"
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

  enum class Event { data, keys, redraw, quit, nothing };
  /// Sleeps until one of `fds` is readable (data), keys were pressed (keys), the window has changed its size or this
  /// program was stopped and goes on (redraw), a signal ends it (quit), or so many milliseconds are over (nothing; -1:
  /// never). An fd of -1 counts for nothing.
  Event wait(std::span<const int> fds, int most_ms = -1);

  /// The keys that were pressed since the last call.
  std::vector<Key> take_keys();

 private:
  void enter();
  void leave();
  void suspend();

  ipc::UniqueFd signals_;
  std::string read_;  ///< from the keyboard, not yet taken
  termios saved_{};
  bool keyboard_ = false;  ///< standard input is a terminal, in the mode that top sets
};

}  // namespace gpuctl::cli
