#include "libgpuslice/client/mps_variables.h"

#include <cuda.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/environment.h"
#include "libgpuslice/base/hardware_queues.h"
#include "libgpuslice/base/nothrow.h"
#include "libgpuslice/base/traced.h"
#include "libgpuslice/base/watching_tool.h"
#include "libgpuslice/client/client.h"

namespace gpuslice {

namespace {

/// Held while gpuctld is asked: no other thread initialises the driver before the answer is there.
std::mutex g_asking;
bool g_asked = false;
std::atomic<bool> g_keeps{false}, g_isolated{false}, g_led{false};

/// Nobody can make anything there. "If the connection attempt fails, the program continues to run as it
/// normally would without MPS", NVIDIA's MPS manual says.
constexpr char kNoMps[] = "/proc/isolated-by-gpuctl";

}  // namespace

MpsVariables::MpsVariables() noexcept
    : percentage_{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"},
      queues_{kHardwareQueues},
      pipe_directory_{"CUDA_MPS_PIPE_DIRECTORY"},
      devices_{gpuctl::kVisibleDevices} {
  nothrow(
      [this] {
        begin();
        return true;
      },
      false);
}

MpsVariables::~MpsVariables() {
  percentage_.restore();
  queues_.restore();
  pipe_directory_.restore();
  devices_.restore();
}

void MpsVariables::begin() {
  if (!Client::get().wanted()) return;
  const std::lock_guard lock(g_asking);
  if (g_asked) return;
  g_asked = asked_ = true;
  const Client::MpsStart start = Client::get().ask_for_mps(own_hardware_queues());
  refused_ = start.refused;
  if (refused_) {
    debug("this program is in no slice, and gpuctld refuses such programs");
    g_asked = false;  // the next one asks anew, as a slice may take it in by then
    return;
  }
  find_mps(start);
  if (start.hundredths) keep_to(*start.hundredths);
  if (start.queues) take_queues(*start.queues);
  if (start.gpus) see_only(*start.gpus);
}

/// The user's own word goes before gpuctld's where the slice is not isolated. Profilers refuse programs in MPS, and a
/// debugger waits there for the other clients: where gpuctld alone wants MPS, what they look at runs by turns.
void MpsVariables::find_mps(const Client::MpsStart& start) {
  const char* own = environment(pipe_directory_.name);
  std::optional<std::string> led = start.pipe_directory;
  if (led && (tool_watches() || is_traced())) {
    debug("a tool looks at this program: it joins no MPS");
    led.reset();
  }
  if (!start.isolated && !led) return;
  if (!start.isolated && own != nullptr && *own != '\0') {
    debug("this program keeps the MPS in %s, not that of gpuctld", own);
    return Client::get().set_pipe_directory(own);
  }
  debug("this program looks for MPS in %s", led ? led->c_str() : "no place");
  pipe_directory_.set_to(led.value_or(kNoMps));
  g_isolated = start.isolated && pipe_directory_.set;
  g_led = led && pipe_directory_.set;
  if (g_led) Client::get().set_pipe_directory(*led);
}

void MpsVariables::keep_to(unsigned hundredths) {
  g_keeps = true;
  const std::optional<std::string> text = percentage_to_set(environment(percentage_.name), hundredths);
  if (!text) return;
  debug("MPS is to keep this program to %s %% of the SMs", text->c_str());
  percentage_.set_to(*text);
}

/// Where MPS makes as many by itself, it need not be told.
void MpsVariables::take_queues(unsigned queues) {
  debug("this program has %u hardware queues", queues);
  if (own_hardware_queues() == 0 && queues != kUsualUnderMps) queues_.set_to(std::to_string(queues));
  set_hardware_queues(queues);
}

void MpsVariables::see_only(const std::vector<gpuctl::SliceGpu>& gpus) {
  const std::string list = gpuctl::visible_devices(gpuctl::those_here(gpus), environment(devices_.name));
  debug("this program sees the GPUs %s", list.c_str());
  devices_.set_to(list);
}

void MpsVariables::Variable::set_to(const std::string& text) {
  if (const char* own = environment(name)) before = own;
  set = ::setenv(name, text.c_str(), 1) == 0;
}

void MpsVariables::Variable::restore() {
  if (!set) return;
  if (before)
    ::setenv(name, before->c_str(), 1);
  else
    ::unsetenv(name);
}

void note_isolation() {
  int found = 0;
  if ((!g_isolated && !g_led) || !driver().cuDeviceGetAttribute) return;
  const bool mps =
      driver().cuDeviceGetAttribute(&found, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 0) == CUDA_SUCCESS && found != 0;
  if (mps && !g_led) debug("the driver has found an MPS all the same");
  if (!mps && g_led) {
    debug("the driver has found no MPS where gpuctld has one");
    Client::get().set_pipe_directory("");
  }
  if (g_isolated && (g_led || !mps)) Client::get().set_isolated();
}

std::vector<int> sms_kept_by_mps(int count) {
  std::vector<int> sms;
  if (!g_keeps || !driver().cuDeviceGetAttribute) return sms;
  for (CUdevice device = 0; device < count; ++device) {
    int value = 0;
    if (driver().cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) != CUDA_SUCCESS ||
        value <= 0)
      return {};
    debug("the driver says that device %d has %d SMs", device, value);
    sms.push_back(value);
  }
  return sms;
}

}  // namespace gpuslice
