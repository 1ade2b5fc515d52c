// Launches that go into a stream as a series: the subgrids of one kernel (ptx/subgrid_abi.h).
//
// To the program they are one launch. So while a series is open, whatever else another thread of the program puts into
// that stream waits. Launches in original form wait for the lane (Lane::whole), so none can ever come in between. Other
// calls look whether a series is open before they begin; two threads that use one stream at the same moment, without
// any order between them, may still both get through.
#pragma once

#include <cuda.h>

#include <atomic>

#include "libgpuslice/base/launch_words.h"
#include "libgpuslice/base/stream_key.h"

namespace gpuslice {

/// Number of open series in this process.
inline constinit std::atomic<int>& g_open_series = g_launch_words.open_series;

/// Notes a series while it lives. Of a stream there is one at a time.
class OpenSeries {
 public:
  /// `apart`: the stream is not ordered with default streams. For the calling thread.
  OpenSeries(CUstream stream, bool apart);
  ~OpenSeries();
  OpenSeries(const OpenSeries&) = delete;
  OpenSeries& operator=(const OpenSeries&) = delete;

  /// Whether a call of this thread about `other` has to wait for the series.
  bool holds_up(CUstream other, bool other_apart) const;
  bool apart() const { return apart_; }

 private:
  const StreamKey key_;
  const unsigned long thread_;
  const bool apart_;
  OpenSeries* next_;  ///< the list of open series
  friend struct SeriesList;
};

void wait_for_series(CUstream stream);
void wait_for_all_series();

/// Called before a driver call about a stream, as join_before(). Any thread but one that has a series open.
inline void let_series_end(CUstream stream) {
  if (g_open_series.load(std::memory_order_acquire) > 0) wait_for_series(stream);
}
/// The same, as join_all(). A call that acts on default streams comes before or after a series that is ordered with
/// them; one that only waits for the device does not mind.
inline void let_all_series_end() {
  if (g_open_series.load(std::memory_order_acquire) > 0) wait_for_all_series();
}

void forget_series_after_fork();

}  // namespace gpuslice
