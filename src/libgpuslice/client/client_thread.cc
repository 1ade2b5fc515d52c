// The thread that keeps the connection of Client.
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <exception>
#include <thread>
#include <utility>

#include "libgpuslice/base/clock.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/client/held_memory.h"
#include "libgpuslice/client/reconnect.h"

namespace gpuslice {

using gpuctl::Result;
namespace ipc = gpuctl::ipc;

namespace {

constexpr std::chrono::milliseconds kReportInterval{200};
/// Between two looks while the process may become another program.
constexpr std::chrono::milliseconds kOutInterval{1};

Reconnect::Socket socket_file(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) return {};
  return {.device = about.st_dev,
          .inode = about.st_ino,
          .changed_ns = std::int64_t{about.st_ctim.tv_sec} * 1'000'000'000 + about.st_ctim.tv_nsec};
}

}  // namespace

/// What the thread knows from one look to the next.
struct Client::Watch {
  Reconnect reconnect{monotonic_ns() ^ static_cast<std::uint64_t>(getpid()) << 32};
  bool attached = true;
  std::chrono::steady_clock::time_point reported = std::chrono::steady_clock::now();
};

// Waits for the end of the connection, reports kernels meanwhile, and attaches again when the daemon is back.
void Client::run() {
  Watch watch;
  while (!left()) {
    try {
      look(watch);
    } catch (const std::exception& error) {  // out of memory, perhaps not for ever
      debug("the thread of the connection: %s", error.what());
      std::this_thread::sleep_for(kReportInterval);
    }
  }
}

/// Returns whether there is a connection, after it lasted for `at_most` or ended.
bool Client::wait_for_end(std::chrono::milliseconds at_most) {
  int fd = -1;
  {
    std::lock_guard lock(mutex_);
    if (connection_) fd = connection_->fd();
  }
  if (fd < 0) return false;
  pollfd waiting{fd, POLLRDHUP, 0};
  poll(&waiting, 1, static_cast<int>(at_most.count()));
  std::lock_guard lock(mutex_);
  if (connection_ && connection_->fd() == fd && (waiting.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL))) {
    debug("gpuctld went away; keeping the last grant");
    connection_.reset();
  }
  return connection_ != nullptr;
}

/// What does not change is said once, however long it lasts. With mutex_.
void Client::say(const gpuctl::Error& why) {
  if (std::exchange(said_, why.message) != said_) debug("%s", said_.c_str());
}

void Client::look(Watch& watch) {
  if (stay_ == Stay::kOut) return std::this_thread::sleep_for(kOutInterval);
  if (comes_back_) {
    try_to_attach(watch, socket_file(socket_));
    comes_back_ = false;
    return;
  }
  if (ipc::Stub* page = stub()) __atomic_fetch_add(&page->beat, 1, __ATOMIC_RELAXED);
  const Tick tick = tick_.load();
  const std::chrono::milliseconds pause = tick ? tick() : kReportInterval;
  const bool was_attached = std::exchange(watch.attached, wait_for_end(pause));
  const auto now = std::chrono::steady_clock::now();
  if (watch.attached) {
    if (now - watch.reported < kReportInterval) return;
    watch.reported = now;
    return report_kernels(false);
  }
  if (stay_ != Stay::kHere || comes_back_) return;
  const Reconnect::Socket socket = socket_file(socket_);
  if (was_attached) return watch.reconnect.failed(now, socket, why(false));
  std::this_thread::sleep_for(kReportInterval);
  if (watch.reconnect.due(now, socket)) try_to_attach(watch, socket);
}

Reconnect::Why Client::why(bool refused) const {
  return refused ? Reconnect::Why::refused : stub() ? Reconnect::Why::no_daemon_for_held : Reconnect::Why::no_daemon;
}

void Client::try_to_attach(Watch& watch, const Reconnect::Socket& socket) {
  bool refused = false;
  Result<void> attached;
  {
    std::lock_guard lock(mutex_);
    attached = connect_locked(stub() != nullptr, &refused);
    if (!attached) say(attached.error());
  }
  watch.attached = static_cast<bool>(attached);
  if (!attached) return watch.reconnect.failed(std::chrono::steady_clock::now(), socket, why(refused));
  watch.reconnect.attached();
  HeldMemory::get().publish();
  report_kernels(true);
}

}  // namespace gpuslice
