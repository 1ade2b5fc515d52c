// The bursts of this program (burst.h): who begins and ends them, and the histograms in the stub page where they count.
// Requests that the program names count there too.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "libgpuslice/agent/activity.h"
#include "libgpuslice/base/launch_words.h"

namespace gpuslice {

/// A launch or a copy is about to go into this stream of a device, and is not known to belong to a burst.
void issued(int device, CUstream stream, bool reads_results = false);
/// The same of a device that is to be found out.
void issued_to_current(CUstream stream, bool reads_results);

/// The program is about to put work into the stream: a launch that does not go as it came, or a copy. A default stream
/// is named by its own handle. `reads_results`: it is a copy to the host.
inline void note_work(CUstream stream, bool reads_results = false) {
  const LaunchWords& words = g_launch_words;
  if (!words.page.load(std::memory_order_relaxed)) return;
  if (words.one_device.load(std::memory_order_relaxed)) [[likely]] {
    Activity& activity = Activity::get();
    activity.count_other_work(0);
    if (activity.burst(0).knows(stream)) [[likely]]
      return;
    return issued(0, stream, reads_results);
  }
  issued_to_current(stream, reads_results);
}

/// A call of the program that may wait for the GPU, from before it.
class BurstWait {
 public:
  BurstWait() : open_(any_open()) {
    if (open_) [[unlikely]]
      before_ = Activity::get().issued_so_far();
  }

  /// The call has succeeded: what it has seen is complete, of the current device if it is all.
  void over(Burst::Seen seen, CUstream stream = nullptr) const {
    if (open_) [[unlikely]]
      end(seen, stream);
  }

 private:
  static bool any_open() {
    if (g_launch_words.one_device.load(std::memory_order_relaxed)) [[likely]]
      return Activity::get().burst(0).open();
    return Activity::get().any_burst();
  }
  void end(Burst::Seen seen, CUstream stream) const;
  void end_slowly(Burst::Seen seen, CUstream stream) const;

  bool open_;
  std::uint32_t before_ = 0;
};

/// The device of the current context, whose bursts are measured; -1: there is none.
int current_burst_device();
/// Whether nothing that the program had put on the device is outstanding, as far as its burst knows. Asks the driver.
bool burst_idle(int device);

/// The program destroys a stream, or what a device had is gone.
void burst_stream_destroyed(CUstream stream);
void forget_burst(int device);

/// Counts a request that the program named, which took so long. False: the program is in no slice.
bool count_request(std::uint64_t ns);

}  // namespace gpuslice
