#include "libgpuslice/timeslice/mps_server.h"

#include <poll.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "ipc/codec.h"
#include "ipc/connection.h"
#include "ipc/stub_map.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/environment.h"
#include "libgpuslice/base/own_threads.h"
#include "libgpuslice/client/attachment.h"
#include "libgpuslice/timeslice/channels.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;

namespace {

/// How soon a change of the page is seen, and another daemon is looked for.
constexpr std::chrono::milliseconds kPageInterval{20}, kDaemonInterval{1000};

constinit std::atomic<bool> g_is_server{false}, g_serves{false};

[[gnu::constructor]] void find_out() {
  const char* socket = environment(kMpsServerVariable);
  g_is_server = socket != nullptr && *socket != '\0' &&
                std::string_view(program_invocation_short_name) == "nvidia-cuda-mps-server";
}

/// Sets what the page says of a device, and writes what the driver granted.
void set_turns(ipc::Stub& page, int device) {
  const std::uint32_t us = ipc::load(page.grant[device].time_slice_us);
  const TimeSliceResult result = ChannelGroups::get().want(device, us);
  ipc::Usage& out = page.usage[device];
  ipc::store(out.time_slice_us, result.us);
  ipc::store(out.channel_groups, result.groups);
  ipc::store(out.time_slice_state, static_cast<std::uint16_t>(result.state));
}

/// Until the daemon ends, or for want of one.
void follow(const std::string& socket) {
  gpuctl::Result<ipc::Connection> daemon = ipc::Connection::open(socket, kDaemonInterval);
  if (!daemon) return;
  const ipc::Call call{.method = "io.gpuctl.ServeMps", .parameters = {{"stub_version", ipc::stub_version()}}};
  const gpuctl::Result<Answered> answered = call_with_page(*daemon, call, kDaemonInterval);
  if (!answered || !answered->reply.error.empty())
    return debug("gpuctld has no turns for this MPS server: %s",
                 answered ? answered->reply.error.c_str() : answered.error().message.c_str());
  const ipc::StubMap& page = answered->page;
  if (!page.check()) return;
  debug("gpuctld says the turns of this MPS server");
  const int devices = static_cast<int>(std::min(page->devices, ipc::kMaxDevices));
  pollfd ended{daemon->fd(), POLLRDHUP, 0};
  std::uint32_t seen[ipc::kMaxDevices] = {}, groups = 0;
  do {
    const std::uint32_t made = ChannelGroups::get().made();
    for (int device = 0; device < devices; ++device) {
      const std::uint32_t us = ipc::load(page->grant[device].time_slice_us);
      if (us == seen[device] && (us == 0 || made == groups)) continue;
      seen[device] = us;
      set_turns(*page.get(), device);
    }
    groups = made;
  } while (poll(&ended, 1, static_cast<int>(kPageInterval.count())) == 0 || ended.revents == 0);
}

void* serve(void*) {
  const std::string socket = environment(kMpsServerVariable);
  for (;;) {
    try {
      follow(socket);
    } catch (const std::exception& error) {  // out of memory, perhaps not for ever
      debug("the turns of the MPS server: %s", error.what());
    }
    std::this_thread::sleep_for(kDaemonInterval);
  }
}

}  // namespace

bool is_mps_server() {
  return g_is_server.load(std::memory_order_relaxed);
}

void serve_turns() noexcept {
  if (!g_serves.exchange(true)) start_own_thread(serve, nullptr);
}

}  // namespace gpuslice
