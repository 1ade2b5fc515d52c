#include "gpuctld/host/service_manager.h"

namespace gpuctl::daemon {

int inherited_listener(std::string&) {
  return -1;
}

void notify(const std::string&) {}

std::optional<std::chrono::microseconds> watchdog_interval() {
  return std::nullopt;
}

}  // namespace gpuctl::daemon
