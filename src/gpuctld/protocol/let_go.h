// Takes what a peer has sent, and closes connections through which a peer passed descriptors of its own.
//
// Nobody asked for them, and the last close of a descriptor can take as long as its owner likes: that of a TCP socket
// with SO_LINGER waits for the other end. So the daemon's thread never makes it. A thread with a table of descriptors
// of its own keeps the connection while the daemon's thread closes it, and ends: what a thread drops at its end does
// not linger, and where it waits all the same nobody waits for it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

/// Takes what has arrived and does not wait; 0: the end; -1: errno says why not. `passed`: descriptors lie there, which
/// are not taken, nor what was sent along them: what is taken with no room for them is dropped, by this thread.
ssize_t receive(int socket, std::span<char> buffer, bool& passed);

/// Everything is called on the thread that runs the io_context, which outlives this object.
class LetGo {
 public:
  /// Called once for each connection, when it is closed here; not after the object is gone. `took`: of the processor,
  /// beside what the daemon's thread did.
  using Closed = std::function<void(std::uint32_t uid, std::chrono::nanoseconds took)>;
  LetGo(boost::asio::io_context& context, Closed closed);
  ~LetGo();
  LetGo(const LetGo&) = delete;
  LetGo& operator=(const LetGo&) = delete;

  /// The peer sees the end at once. Where it passed nothing the connection is closed before this returns.
  void close(ipc::UniqueFd socket, std::uint32_t uid);

 private:
  struct Connection {
    ipc::UniqueFd socket;
    std::uint32_t uid = 0;
  };
  struct Batch;
  void begin();

  boost::asio::io_context& context_;
  Closed closed_;
  std::vector<Connection> waiting_;
  std::shared_ptr<Batch> batch_;  ///< under way
};

}  // namespace gpuctl::daemon
