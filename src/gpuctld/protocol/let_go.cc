#include "gpuctld/protocol/let_go.h"

#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <iterator>
#include <semaphore>
#include <system_error>
#include <thread>
#include <utility>

#include "gpuctld/clock.h"

namespace gpuctl::daemon {

/// Connections that the daemon's thread closes in one turn.
constexpr std::size_t kClosedAtOnce = 16;

ssize_t receive(int socket, std::span<char> buffer, bool& passed) {
  iovec data{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  const ssize_t size = ::recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT);
  passed = size > 0 && (message.msg_flags & MSG_CTRUNC) != 0;
  return size <= 0 || passed ? size : ::recv(socket, buffer.data(), static_cast<std::size_t>(size), MSG_DONTWAIT);
}

/// Takes all that is left there; nothing more arrives. True: descriptors were passed.
static bool drain(int socket) {
  // A byte out of band would be dropped unseen, with what was passed along it.
  constexpr int kInline = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_OOBINLINE, &kInline, sizeof kInline);
  std::array<char, 16384> unread;
  bool passed = false;
  while (!passed && receive(socket, unread, passed) > 0) continue;
  return passed;
}

/// What one thread keeps.
struct LetGo::Batch {
  std::vector<Connection> connections;
  std::chrono::nanoseconds took{};  ///< by the thread, for each connection
  std::binary_semaphore kept{0};    ///< the thread has a table of its own, and has said so
  std::binary_semaphore closed{0};  ///< by the daemon's thread

  /// On the thread: in its table nothing else stays open because of it.
  void keep_these_alone() const {
    std::vector<unsigned> these;
    for (const Connection& connection : connections) these.push_back(static_cast<unsigned>(connection.socket.get()));
    std::ranges::sort(these);
    unsigned from = 0;
    for (const unsigned fd : these) {
      if (fd > from) ::close_range(from, fd - 1, 0);
      from = fd + 1;
    }
    ::close_range(from, ~0u, 0);
  }

  /// On the daemon's thread. Returns whose they were.
  std::vector<std::uint32_t> close() {
    std::vector<std::uint32_t> whose;
    for (const Connection& connection : connections) whose.push_back(connection.uid);
    if (!connections.empty()) connections.clear(), closed.release();
    return whose;
  }
};

LetGo::LetGo(boost::asio::io_context& context, Closed closed) : context_(context), closed_(std::move(closed)) {}

LetGo::~LetGo() {
  for (Connection& connection : waiting_) connection.socket.release();  // the process's end closes them
  if (!batch_) return;
  batch_->kept.acquire();  // nothing is posted to the context from now on
  batch_->close();
}

void LetGo::close(ipc::UniqueFd socket, std::uint32_t uid) {
  ::shutdown(socket.get(), SHUT_RDWR);  // nothing more arrives
  if (!drain(socket.get())) {
    socket.reset();
    return closed_(uid, {});
  }
  waiting_.push_back({std::move(socket), uid});
  begin();
}

void LetGo::begin() {
  if (batch_ || waiting_.empty()) return;
  batch_ = std::make_shared<Batch>();
  const auto some = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(kClosedAtOnce, waiting_.size()));
  batch_->connections.assign(std::move_iterator(waiting_.begin()), std::move_iterator(some));
  waiting_.erase(waiting_.begin(), some);
  const auto close_here = [this, kept = std::weak_ptr(batch_)] {
    const auto batch = kept.lock();
    if (!batch || batch->connections.empty()) return;  // ~LetGo() was first
    batch_.reset();
    for (const std::uint32_t uid : batch->close()) closed_(uid, batch->took);
    begin();
  };
  // Signals are for the daemon's thread: what asio's handler writes to is closed in the other.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([batch = batch_, close_here, &context = context_] {
      if (::unshare(CLONE_FILES) == 0)
        batch->keep_these_alone();
      else  // a container may forbid it; then this thread waits
        for (Connection& connection : batch->connections) connection.socket.reset();
      batch->took = std::chrono::nanoseconds(now_ns(CLOCK_THREAD_CPUTIME_ID) / batch->connections.size());
      boost::asio::post(context, close_here);
      batch->kept.release();
      batch->closed.acquire();
    }).detach();
  } catch (const std::system_error&) {  // no thread is to be had
    boost::asio::post(context_, close_here);
    batch_->kept.release();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace gpuctl::daemon
