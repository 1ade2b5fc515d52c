#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include <cstdint>

#include "gpuctld/host/service_manager.h"

namespace gpuctl::daemon {

int inherited_listener(std::string& problem) {
  const int count = ::sd_listen_fds(1);
  if (count <= 0) return -1;
  if (count > 1)
    problem = "more than one socket was handed over";
  else if (::sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_STREAM, 1, nullptr, 0) <= 0)
    problem = "what was handed over is not a listening unix stream socket";
  return SD_LISTEN_FDS_START;
}

void notify(const std::string& state) {
  ::sd_notify(0, state.c_str());
}

std::optional<std::chrono::microseconds> watchdog_interval() {
  std::uint64_t microseconds = 0;
  if (::sd_watchdog_enabled(0, &microseconds) <= 0) return std::nullopt;
  return std::chrono::microseconds(microseconds);
}

}  // namespace gpuctl::daemon
