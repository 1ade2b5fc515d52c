// What systemd and the daemon tell each other. The build picks service_manager_systemd.cc or service_manager_none.cc.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace gpuctl::daemon {

/// The listening socket handed over by the service manager, -1 if there is none. More than one is an error text in
/// `problem`.
int inherited_listener(std::string& problem);

/// Sends a state such as "READY=1". Nothing happens without a service manager.
void notify(const std::string& state);

/// How often the service manager wants to hear "WATCHDOG=1" at least.
std::optional<std::chrono::microseconds> watchdog_interval();

}  // namespace gpuctl::daemon
