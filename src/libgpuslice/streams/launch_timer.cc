#include "libgpuslice/streams/launch_timer.h"

#include <cmath>

#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/clock.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/relaxed_capture.h"
#include "libgpuslice/image/kernels.h"

namespace gpuslice {

LaunchTimer::~LaunchTimer() {
  for (const Timing& timing : timings_) {
    if (timing.before) driver().cuEventDestroy_v2(timing.before);
    if (timing.behind) driver().cuEventDestroy_v2(timing.behind);
  }
}

void LaunchTimer::begin(CUstream stream, KernelInfo& kernel, const OpaqueJob& job) {
  if (useless_ || count_ == kMost || capturing_anything()) return;
  if (!choice_.is_next(kernel.timed.load(std::memory_order_relaxed), job.issued_ns)) return;
  Timing& timing = next();
  const Driver& d = driver();
  if (!timing.behind) {
    const RelaxedCapture relaxed;  // another thread may begin a capture
    const auto make = [&](CUevent& event) {
      return event || (d.cuEventCreate && d.cuEventCreate(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS);
    };
    if (!d.cuEventElapsedTime || !make(timing.before) || !make(timing.behind)) {
      useless_ = true;
      return;
    }
  }
  timing.job = job;
  timing.host_ns = monotonic_ns();
  if (d.cuEventRecord(timing.before, stream) != CUDA_SUCCESS) return;
  kernel.timed.fetch_add(1, std::memory_order_relaxed);
  under_way_ = true;
}

void LaunchTimer::end(CUstream stream, std::uint32_t sms) {
  if (!under_way_) return;
  under_way_ = false;
  Timing& timing = next();
  if (driver().cuEventRecord(timing.behind, stream) != CUDA_SUCCESS) return;
  timing.host_ns = monotonic_ns() - timing.host_ns;
  timing.sms = sms;
  ++count_;
}

void LaunchTimer::collect(std::vector<TimedLaunch>& out) {
  for (; count_ > 0; --count_, first_ = (first_ + 1) % kMost) {
    const Timing& timing = timings_[first_];
    const CUresult reached = driver().cuEventQuery(timing.behind);
    if (reached == CUDA_ERROR_NOT_READY) return;
    float ms = 0;
    if (reached != CUDA_SUCCESS || driver().cuEventElapsedTime(&ms, timing.before, timing.behind) != CUDA_SUCCESS)
      continue;
    const auto gpu_ns = ms > 0 && ms < 1e9f ? static_cast<std::uint64_t>(std::llround(double{ms} * 1e6)) : 0;
    if (TimingChoice::is_credible(gpu_ns, timing.host_ns))
      out.push_back({.job = timing.job, .sms = timing.sms, .gpu_ns = gpu_ns, .done_ns = monotonic_ns()});
  }
}

}  // namespace gpuslice
