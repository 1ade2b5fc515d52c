// A small blocking Varlink client on a unix stream socket. It also runs in other programs' processes (libgpuslice). So
// no exception leaves it, it raises no SIGPIPE, it has no signal handlers and no threads, and every descriptor is
// close-on-exec.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ipc/framing.h"
#include "ipc/message.h"
#include "ipc/unique_fd.h"

namespace gpuctl::ipc {

/// The default time to wait for an answer: the daemon answers within a millisecond or is in trouble.
inline constexpr std::chrono::milliseconds kDefaultTimeout{5000};
/// No time limit.
inline constexpr std::chrono::milliseconds kNoTimeout{-1};

/// File descriptors accepted with one message; further ones are closed unseen.
inline constexpr std::size_t kMaxFds = 8;

/// For one thread at a time. After any failure except a timeout of receive(), close it; call() does that itself.
class Connection {
 public:
  /// Connects to the socket at `path`. The error message names the path and what to check.
  static Result<Connection> open(const std::string& path, std::chrono::milliseconds timeout = kDefaultTimeout) noexcept;

  /// Takes over a connected stream socket.
  explicit Connection(UniqueFd socket) noexcept : socket_(std::move(socket)) {}

  /// Sends a call and waits for its (first) reply. A call with `oneway` set returns an empty reply at once.
  /// An error reply of the peer is a successful Result with `error` set.
  Result<Reply> call(const Call& call, std::chrono::milliseconds timeout = kDefaultTimeout) noexcept;

  Result<void> send(const Call& call, std::chrono::milliseconds timeout = kDefaultTimeout) noexcept;

  /// The next reply: after call() with `more`, while replies say `continues`.
  Result<Reply> receive(std::chrono::milliseconds timeout = kDefaultTimeout) noexcept;

  /// The descriptors that came with the messages received so far, in order. The caller owns them.
  std::vector<UniqueFd> take_fds() noexcept;

  /// For poll(2): readable when a reply or the end of the connection has come. Still owned by the connection.
  int fd() const noexcept { return socket_.get(); }

  /// True if a whole reply is in the buffer already, which poll(2) cannot know.
  bool reply_waiting() const noexcept { return splitter_.has_complete(); }

 private:
  UniqueFd socket_;
  MessageSplitter splitter_;
  std::vector<UniqueFd> fds_;
};

}  // namespace gpuctl::ipc
