#include "gpuctl/text/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
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
  keyboard_ = ::tcgetattr(STDIN_FILENO, &saved_) == 0;
  enter();
}

Terminal::~Terminal() {
  leave();
  const sigset_t set = our_signals();
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

void Terminal::enter() {
  if (keyboard_) {
    termios mode = saved_;
    mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    mode.c_cc[VMIN] = 0;
    mode.c_cc[VTIME] = 0;
    keyboard_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &mode) == 0;
  }
  show(kEnter);
}

void Terminal::leave() {
  show(kLeave);
  if (keyboard_) ::tcsetattr(STDIN_FILENO, TCSANOW, &saved_);
}

void Terminal::suspend() {
  leave();
  ::raise(SIGSTOP);
  enter();
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

Terminal::Event Terminal::wait(std::span<const int> fds, int most_ms) {
  std::vector<pollfd> entries{{signals_.get(), POLLIN, 0}, {keyboard_ ? STDIN_FILENO : -1, POLLIN, 0}};
  for (const int fd : fds) entries.push_back({fd, POLLIN, 0});
  while (true) {
    const int ready = ::poll(entries.data(), entries.size(), most_ms);
    if (ready < 0 && errno != EINTR) return Event::quit;
    if (ready <= 0) return Event::nothing;
    bool redraw = false;
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
      if (info.ssi_signo == SIGTSTP)
        suspend();
      else if (info.ssi_signo != SIGWINCH)
        return Event::quit;
      redraw = true;
    }
    if (entries[1].revents != 0) {
      char buffer[256];
      const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
      if (n <= 0) return Event::quit;
      read_.append(buffer, static_cast<std::size_t>(n));
      return Event::keys;
    }
    if (redraw) return Event::redraw;
    if (std::any_of(entries.begin() + 2, entries.end(), [](const pollfd& entry) { return entry.revents != 0; }))
      return Event::data;
  }
}

std::vector<Key> Terminal::take_keys() {
  // The rest of a sequence comes with its beginning, or at once. Where it does not, the key was Esc.
  std::vector<Key> keys = cli::take_keys(read_, false);
  if (read_.empty()) return keys;
  pollfd more{STDIN_FILENO, POLLIN, 0};
  constexpr int kRestMs = 25;
  char buffer[64];
  if (::poll(&more, 1, kRestMs) > 0)
    if (const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer); n > 0)
      read_.append(buffer, static_cast<std::size_t>(n));
  for (const Key& key : cli::take_keys(read_, true)) keys.push_back(key);
  return keys;
}

}  // namespace gpuctl::cli
