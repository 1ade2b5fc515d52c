// Identifies the process of a row of the table, and says whether it is alive.
#pragma once

#include <cstdint>
#include <string>

namespace gpuctl::softgpu {

/// The start time of that process, in clock ticks since boot; 0 if it does not exist or is dead and not yet reaped. A
/// pid together with this number identifies a process for ever. One read of /proc, about 20 us.
std::uint64_t process_start_time(std::uint32_t pid);

/// Where /proc cannot be read, as by a process that has no descriptor left, a process of that number counts as the one.
bool process_alive(std::uint32_t pid, std::uint64_t start_time);

/// The short name of a process (`/proc/PID/comm`), empty if it does not exist.
std::string process_name(std::uint32_t pid);

}  // namespace gpuctl::softgpu
