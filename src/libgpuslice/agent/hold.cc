#include "libgpuslice/agent/hold.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "libgpuslice/agent/bursts.h"
#include "libgpuslice/agent/contexts.h"
#include "libgpuslice/base/capture.h"
#include "libgpuslice/client/client.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;

namespace {

/// Between two looks: short beside a pause, long beside what a question to the driver costs.
constexpr std::chrono::microseconds kLook{200};

struct Held {
  std::atomic<int> waiting{0};
  std::atomic<bool> given_up{false};  ///< until the page says that there is no hold
};
constinit std::array<Held, ipc::kMaxDevices> g_held;

/// Whether the page that is in force holds launches to the device back.
bool is_held(int device) {
  const ipc::Grant* grant = Client::get().grant(device);
  return grant != nullptr && (ipc::load(grant->flags) & ipc::kHeld) != 0;
}

void say_still(int device, bool still) {
  ipc::Stub* page = g_launch_words.page.load(std::memory_order_acquire);
  if (page == nullptr) return;
  ipc::LatencyCounts& counts = ipc::latency_at(*page, static_cast<std::size_t>(device));
  if ((ipc::load(counts.still) != 0) != still) ipc::store(counts.still, std::uint32_t{still});
}

}  // namespace

void wait_while_held(CUstream stream) {
  const int device = current_burst_device();
  if (device < 0 || !is_held(device) || capturing(stream)) return;
  Held& held = g_held[static_cast<std::size_t>(device)];
  const auto until = std::chrono::steady_clock::now() + ipc::kLongestHold;
  held.waiting.fetch_add(1);
  while (is_held(device) && !held.given_up.load(std::memory_order_relaxed) && !Contexts::exiting()) {
    if (std::chrono::steady_clock::now() >= until) held.given_up.store(true);
    say_still(device, burst_idle(device));
    std::this_thread::sleep_for(kLook);
  }
  if (held.waiting.fetch_sub(1) == 1) say_still(device, false);
}

void look_at_holds() {
  for (int device = 0; device < Activity::devices(); ++device) {
    std::atomic<bool>& given_up = g_held[static_cast<std::size_t>(device)].given_up;
    if (given_up.load(std::memory_order_relaxed) && !is_held(device)) given_up.store(false);
  }
}

}  // namespace gpuslice
