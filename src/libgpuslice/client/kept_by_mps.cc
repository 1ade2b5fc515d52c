#include "libgpuslice/client/kept_by_mps.h"

#include <cuda.h>

#include <atomic>
#include <cstdlib>

#include "libgpuslice/client/client.h"
#include "libgpuslice/driver/driver.h"
#include "libgpuslice/process/debug.h"
#include "libgpuslice/process/environment.h"
#include "libgpuslice/process/nothrow.h"

namespace gpuslice {

namespace {

constexpr char kVariable[] = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";
std::atomic<bool> g_asked{false}, g_wanted{false};

}  // namespace

KeptByMps::KeptByMps() noexcept {
  set_ = nothrow([this] { return begin(); }, false);
}

bool KeptByMps::begin() {
  if (!Client::get().wanted() || g_asked.exchange(true)) return false;
  const std::optional<unsigned> hundredths = Client::get().ask_mps_hundredths();
  if (!hundredths) return false;
  g_wanted = true;
  const char* own = environment(kVariable);
  const std::optional<std::string> text = percentage_to_set(own, *hundredths);
  if (!text) return false;
  if (own != nullptr) before_ = own;
  debug("MPS is to keep this program to %s %% of the SMs", text->c_str());
  return ::setenv(kVariable, text->c_str(), 1) == 0;
}

KeptByMps::~KeptByMps() {
  if (!set_) return;
  if (before_)
    ::setenv(kVariable, before_->c_str(), 1);
  else
    ::unsetenv(kVariable);
}

std::vector<int> sms_kept_by_mps(int count) {
  std::vector<int> sms;
  if (!g_wanted || !driver().cuDeviceGetAttribute) return sms;
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
