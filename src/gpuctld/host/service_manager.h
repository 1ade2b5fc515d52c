// The daemon's side of systemd's protocol. The build picks service_manager_systemd.cc or service_manager_none.cc.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace gpuctl::daemon {

/// The listening socket that the service manager handed over, -1 if there is none. If there is more than one, `problem`
/// gets an error text.
int inherited_listener(std::string& problem);

/// Sends a state such as "READY=1". Does nothing without a service manager.
void notify(const std::string& state);

/// The longest time between two "WATCHDOG=1" that the service manager accepts; empty if it wants none.
std::optional<std::chrono::microseconds> watchdog_interval();

}  // namespace gpuctl::daemon
