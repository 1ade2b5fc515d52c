#include "gpuctl/text/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/read_write.h"

namespace gpuctl::cli {
namespace {

constexpr const char* kEnter = "\x1b[?1049h\x1b[?25l";  // alternate screen, no cursor
constexpr const char* kLeave = "\x1b[?25h\x1b[?1049l";
// Terminals that know this mode show the whole update at once; others ignore it.
constexpr const char* kBeginUpdate = "\x1b[?2026h";
constexpr const char* kEndUpdate = "\x1b[?2026l";

void show(const std::string& text) {
  (void)write_all(STDOUT_FILENO, text);  // else the terminal is gone; wait() notices
}

sigset_t our_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH}) sigaddset(&set, signal);
  return set;
}

}  // namespace

Terminal::Terminal() {
  const sigset_t set = our_signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (::tcgetattr(STDIN_FILENO, &saved_) == 0) {
    termios mode = saved_;
    mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    mode.c_cc[VMIN] = 0;
    mode.c_cc[VTIME] = 0;
    keyboard_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &mode) == 0;
  }
  show(kEnter);
}

Terminal::~Terminal() {
  show(kLeave);
  if (keyboard_) ::tcsetattr(STDIN_FILENO, TCSANOW, &saved_);
  const sigset_t set = our_signals();
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

Terminal::Size Terminal::size() const {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {80, 24};
  return {size.ws_col, size.ws_row};
}

void Terminal::draw(const std::vector<std::string>& lines) {
  std::string text = std::string(kBeginUpdate) + "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "" : "\r\n") + lines[i] + "\x1b[K";
  show(text + "\x1b[J" + kEndUpdate);
}

Terminal::Event Terminal::wait(int fd, int most_ms) {
  while (true) {
    pollfd entries[] = {{signals_.get(), POLLIN, 0}, {fd, POLLIN, 0}, {keyboard_ ? STDIN_FILENO : -1, POLLIN, 0}};
    const int ready = ::poll(entries, 3, most_ms);
    if (ready < 0 && errno != EINTR) return Event::quit;
    if (ready == 0) return Event::nothing;
    bool resized = false;
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
      // Ctrl-Z would leave the shell with gpuctl's screen, so it is ignored while the terminal is in use.
      if (info.ssi_signo == SIGTSTP) continue;
      if (info.ssi_signo != SIGWINCH) return Event::quit;
      resized = true;
    }
    if (entries[2].revents != 0) {
      char key = 0;
      const ssize_t n = ::read(STDIN_FILENO, &key, 1);
      if (n <= 0 || key == 'q' || key == 'Q') return Event::quit;
    }
    if (resized) return Event::redraw;
    if (entries[1].revents != 0) return Event::data;
  }
}

}  // namespace gpuctl::cli
