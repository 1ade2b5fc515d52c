// Inside NVIDIA's MPS server. The channel groups of all its clients are the server's, so only the server can set how
// long their turns last. gpuctld preloads this library into the MPS that it starts, and says the turns on a stub page
// (ServeMps of io.gpuctl).
#pragma once

namespace gpuslice {

/// The daemon's socket; gpuctld sets it for the MPS that it starts, and nobody else.
inline constexpr char kMpsServerVariable[] = "GPUCTL_MPS_SERVER";

/// Whether this process is an MPS server that gpuctld started. Any thread, in signal handlers too.
bool is_mps_server();

/// The driver has made a channel group. From the first on a thread of the library's own sets the turns that the daemon
/// wants, and goes on with the next daemon when one ends. Any thread; throws nothing.
void serve_turns() noexcept;

}  // namespace gpuslice
