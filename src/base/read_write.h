// Reading from and writing to descriptors, where one call may do only a part, or be interrupted by a signal.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>

namespace gpuctl {

/// read(2), again where a signal interrupted it. 0: the end; -1: errno says why not, EAGAIN that nothing is there yet.
inline ssize_t read_some(int fd, void* to, std::size_t bytes) noexcept {
  ssize_t got = 0;
  do got = ::read(fd, to, bytes);
  while (got < 0 && errno == EINTR);
  return got;
}

/// Reads exactly so many bytes. False if the end comes before, or as errno says. The descriptor blocks.
inline bool read_exactly(int fd, void* to, std::size_t bytes) noexcept {
  for (auto* at = static_cast<char*>(to); bytes > 0;) {
    const ssize_t got = read_some(fd, at, bytes);
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

enum class ReadEnd {
  end,      ///< of what there is to read
  later,    ///< nothing is there yet, in a descriptor that does not block
  stopped,  ///< `take` wanted no more
  failed,   ///< errno says why
};

/// Gives what can be read to `take(std::string_view)`, piece by piece, while that returns true.
template <class Take>
ReadEnd read_pieces(int fd, Take take) {
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t got = read_some(fd, buffer.data(), buffer.size());
    if (got == 0) return ReadEnd::end;
    if (got < 0) return errno == EAGAIN ? ReadEnd::later : ReadEnd::failed;
    if (!take(std::string_view(buffer.data(), static_cast<std::size_t>(got)))) return ReadEnd::stopped;
  }
}

/// Writes all bytes, and waits where a descriptor that does not block takes no more yet. False: errno says why.
inline bool write_all(int fd, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (written == 0) {
      errno = EIO;
      return false;
    } else if (errno == EAGAIN) {
      pollfd room{fd, POLLOUT, 0};
      if (::poll(&room, 1, -1) < 0 && errno != EINTR) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace gpuctl
