#include "gpuctld/host/journal.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/one_line.h"

namespace gpuctl::daemon {

std::optional<Journal> Journal::of(int fd, const char* stream, const std::string& socket) {
  if (stream == nullptr) stream = std::getenv("JOURNAL_STREAM");
  struct stat found {};
  if (stream == nullptr || ::fstat(fd, &found) != 0 ||
      std::to_string(found.st_dev) + ":" + std::to_string(found.st_ino) != stream)
    return std::nullopt;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof address.sun_path) return std::nullopt;
  std::ranges::copy(socket, address.sun_path);
  ipc::UniqueFd connection(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!connection || ::connect(connection.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return std::nullopt;
  return Journal(std::move(connection));
}

bool Journal::write(const std::string& line,
                    const std::vector<std::pair<std::string_view, std::string>>& fields) const {
  std::string datagram = "SYSLOG_IDENTIFIER=gpuctld\nMESSAGE=" + one_line(line) + "\n";
  for (const auto& [name, value] : fields) datagram.append(name).append("=").append(one_line(value)).append("\n");
  return ::send(socket_.get(), datagram.data(), datagram.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(datagram.size());
}

}  // namespace gpuctl::daemon
