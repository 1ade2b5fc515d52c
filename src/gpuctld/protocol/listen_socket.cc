#include "gpuctld/protocol/listen_socket.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "gpuctld/file_error.h"

namespace gpuctl::daemon {

namespace {

constexpr std::chrono::milliseconds kPause{20};
/// Whoever has the lock of a path has it for a moment, unless somebody else's program holds it to be in the way.
constexpr std::chrono::seconds kTurnPatience{5};

/// Whether the process is there that listens where this socket is connected to.
bool listener_is_there(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid <= 0) return true;
  return ::kill(peer.pid, 0) == 0 || errno != ESRCH;
}

/// Whoever puts a socket at a path or removes it has its turn meanwhile: a file beside it that is locked.
class Turn {
 public:
  static Result<Turn> take(const std::string& path) {
    Turn turn;
    turn.file_ = path + ".lock";
    for (;;) {
      turn.fd_.reset(::open(turn.file_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
      if (!turn.fd_) return file_error(path, "cannot make a socket there");
      struct stat mine {
      }, there{};
      if (!lock_soon(turn.fd_.get(), kTurnPatience) || ::fstat(turn.fd_.get(), &mine) != 0)
        return file_error(turn.file_, "cannot lock it");
      // The previous holder has removed the file that was locked; others may have another one.
      if (::lstat(turn.file_.c_str(), &there) == 0 && there.st_ino == mine.st_ino) return turn;
    }
  }
  Turn(Turn&&) = default;
  ~Turn() {
    if (fd_) ::unlink(file_.c_str());
  }

 private:
  Turn() = default;
  std::string file_;
  ipc::UniqueFd fd_;
};

/// Removes a socket on which no process listens.
Result<void> clear_way(const std::string& path, const sockaddr_un& address) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    return file_error(path, "cannot make a socket there");
  }
  if (!S_ISSOCK(status.st_mode)) return fail(path + ": exists and is not a socket");
  int why = 0;
  for (auto left = kDeadPatience;; left -= kPause) {
    const ipc::UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!probe) return file_error(path, "socket");
    const int connected = ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    why = connected == 0 ? 0 : errno;
    if (why != 0 && why != EAGAIN) break;
    if (why != 0 || listener_is_there(probe.get()) || left <= kPause)
      return fail(path + ": another daemon listens there");
    std::this_thread::sleep_for(kPause);
  }
  errno = why;
  if (why != ECONNREFUSED) return file_error(path, "cannot tell whether another daemon listens there");
  if (::unlink(path.c_str()) != 0) return file_error(path, "cannot remove the socket of a dead daemon");
  return {};
}

}  // namespace

bool lock_soon(int fd, std::chrono::milliseconds patience) {
  for (auto left = patience; ::flock(fd, LOCK_EX | LOCK_NB) != 0; left -= kPause) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || left <= kPause) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

Result<ipc::UniqueFd> listen_at(const std::string& path, unsigned mode, std::optional<unsigned> group) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return fail(path + ": the path of a socket has 1 to " + std::to_string(sizeof address.sun_path - 1) +
                " characters");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const auto turn = Turn::take(path);
  if (!turn) return turn.error();
  if (auto clear = clear_way(path, address); !clear) return clear.error();

  ipc::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return file_error(path, "socket");
  const mode_t before = ::umask(0177);
  const int bound = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ::umask(before);
  if (bound != 0) return file_error(path, "cannot make a socket there");
  const char* what = nullptr;
  if (group && ::chown(path.c_str(), static_cast<uid_t>(-1), *group) != 0)
    what = "cannot give it to the group";
  else if (::chmod(path.c_str(), mode) != 0)
    what = "cannot set its mode";
  else if (::listen(socket.get(), SOMAXCONN) != 0)
    what = "cannot listen";
  if (what != nullptr) {
    const Error error = file_error(path, what);
    ::unlink(path.c_str());
    return error;
  }
  return socket;
}

SocketFile::Identity SocketFile::identity(const std::string& path) {
  struct statx about {};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &about) != 0) return {};
  return {about.stx_ino, about.stx_btime.tv_sec, about.stx_btime.tv_nsec};
}

SocketFile::SocketFile(std::string path) : path_(std::move(path)), identity_(identity(path_)) {}

SocketFile::~SocketFile() {
  const auto turn = Turn::take(path_);  // without one, where no file can be made, nobody can begin there either
  if (identity_.inode != 0 && identity(path_) == identity_) ::unlink(path_.c_str());
}

}  // namespace gpuctl::daemon
