#include "ipc/connection.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include "ipc/interface.h"

namespace gpuctl::ipc {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::string errno_text(int error) {
  return std::strerror(error);
}

/// The end of a wait; there is none for kNoTimeout.
class Deadline {
 public:
  explicit Deadline(milliseconds timeout) {
    if (timeout.count() >= 0) at_ = Clock::now() + timeout;
  }
  /// For poll(2), rounded up so that the last wait does not spin.
  int remaining_ms() const {
    if (!at_) return -1;
    const auto left = std::chrono::ceil<milliseconds>(*at_ - Clock::now()).count();
    return left <= 0 ? 0 : left > 3'600'000 ? 3'600'000 : static_cast<int>(left);
  }
  bool over() const { return at_ && Clock::now() >= *at_; }

 private:
  std::optional<Clock::time_point> at_;
};

Result<void> wait_for(int fd, short events, const Deadline& deadline) {
  while (true) {
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, deadline.remaining_ms());
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return fail("poll: " + errno_text(errno));
    if (deadline.over()) return fail("no answer in time");
  }
}

std::string explain_connect(const std::string& path, int error) {
  struct stat status {};
  if (error == ECONNREFUSED && ::stat(path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode))
    return "cannot connect to " + path + ": it is not a socket";
  const std::string line = "cannot connect to " + path + ": " + errno_text(error);
  const std::string start =
      "; to start it: " + (path == kDefaultSocket ? "systemctl start gpuctld.socket"
                                                  : "gpuctld --socket " + path + " (without a GPU: --software-gpu)");
  if (error == ENOENT) return line + " (is gpuctld running?)" + start;
  if (error == ECONNREFUSED) return line + " (gpuctld has ended and left its socket behind)" + start;
  return line;
}

Result<Connection> open_socket(const std::string& path, milliseconds timeout) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty()) return fail("the path of the socket is empty");
  if (path.size() >= sizeof(address.sun_path))
    return fail("the path of the socket is longer than " + std::to_string(sizeof(address.sun_path) - 1) +
                " bytes: " + path);
  std::memcpy(address.sun_path, path.data(), path.size());

  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // Where a program has closed its output, what it writes there must not come here.
  if (fd && fd.get() <= STDERR_FILENO) fd.reset(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!fd) return fail("socket: " + errno_text(errno));
  const Deadline deadline(timeout);
  // Where the backlog is full a call that blocks waits for its turn. Others would get each place that becomes free
  // before one that comes back from time to time.
  do {
    const int most_ms = deadline.remaining_ms() < 0 ? 0 : std::max(deadline.remaining_ms(), 1);  // 0: without an end
    const timeval most{most_ms / 1000, most_ms % 1000 * 1000};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
      if (::fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0) return fail("fcntl: " + errno_text(errno));
      return Connection(std::move(fd));
    }
    if (errno != EINTR && errno != EAGAIN) return fail(explain_connect(path, errno));
  } while (!deadline.over());
  return fail(explain_connect(path, ETIMEDOUT));
}

/// Keeps the descriptors of one received message, as far as there is room, and closes the others.
void take_control(const msghdr& header, std::vector<UniqueFd>& fds) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(const_cast<msghdr*>(&header), c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      UniqueFd owned(fd);
      if (fds.size() < kMaxFds) fds.push_back(std::move(owned));
    }
  }
}

/// Runs `body` and turns an exception (out of memory) into a failure.
template <class T, class Body>
Result<T> without_throwing(Body body) noexcept {
  try {
    return body();
  } catch (const std::exception& e) {
    return Error{std::string(e.what()).substr(0, 15)};  // short enough to need no memory
  }
}

}  // namespace

Result<Connection> Connection::open(const std::string& path, milliseconds timeout) noexcept {
  return without_throwing<Connection>([&] { return open_socket(path, timeout); });
}

Result<void> Connection::send(const Call& call, milliseconds timeout) noexcept {
  return without_throwing<void>([&]() -> Result<void> {
    const std::string message = encode(call);
    if (message.size() - 1 > kMaxMessageBytes)
      return fail("message longer than " + std::to_string(kMaxMessageBytes) + " bytes");
    if (!socket_) return fail("the connection is closed, as a call had no answer");
    const Deadline deadline(timeout);
    std::size_t sent = 0;
    while (sent < message.size()) {
      const ssize_t n =
          ::send(socket_.get(), message.data() + sent, message.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n >= 0) {
        sent += static_cast<std::size_t>(n);
      } else if (errno == EAGAIN) {
        if (Result<void> ready = wait_for(socket_.get(), POLLOUT, deadline); !ready) return ready.error();
      } else if (errno == EPIPE || errno == ECONNRESET) {
        return fail("the peer closed the connection");
      } else if (errno != EINTR) {
        return fail("send: " + errno_text(errno));
      }
    }
    return {};
  });
}

Result<Reply> Connection::receive(milliseconds timeout) noexcept {
  return without_throwing<Reply>([&]() -> Result<Reply> {
    const Deadline deadline(timeout);
    while (true) {
      if (const std::optional<std::string> message = splitter_.next()) return decode_reply(*message);

      char bytes[16384];
      alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))];
      iovec piece{bytes, sizeof(bytes)};
      msghdr header{};
      header.msg_iov = &piece;
      header.msg_iovlen = 1;
      header.msg_control = control;
      header.msg_controllen = sizeof(control);
      const ssize_t n = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
      if (n > 0) {
        take_control(header, fds_);
        if (Result<void> fed = splitter_.feed({bytes, static_cast<std::size_t>(n)}); !fed) return fed.error();
      } else if (n == 0 || errno == ECONNRESET) {
        return fail("the peer closed the connection");
      } else if (errno == EAGAIN) {
        if (Result<void> ready = wait_for(socket_.get(), POLLIN, deadline); !ready) return ready.error();
      } else if (errno != EINTR) {
        return fail("recvmsg: " + errno_text(errno));
      }
    }
  });
}

Result<Reply> Connection::call(const Call& call, milliseconds timeout) noexcept {
  const Result<void> sent = send(call, timeout);
  Result<Reply> reply = !sent ? sent.error() : call.oneway ? Result<Reply>(Reply{}) : receive(timeout);
  if (!reply) socket_.reset();  // a late answer would be taken for that to the next call
  return reply;
}

std::vector<UniqueFd> Connection::take_fds() noexcept {
  return std::exchange(fds_, {});
}

}  // namespace gpuctl::ipc
