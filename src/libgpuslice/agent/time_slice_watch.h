// Where programs are time-sliced: sets how long this program's time slices last (timeslice/channels.h).
#pragma once

#include <cstdint>

#include "libgpuslice/agent/stub_page.h"

namespace gpuslice {

/// For the agent alone.
class TimeSliceWatch {
 public:
  /// `page` outlives this object.
  explicit TimeSliceWatch(const StubPage& page) : page_(page) {}

  /// Asks the driver for what the page says now, and writes what it granted to the page.
  void look(int device_index);
  /// The page is another one: it must be told of the time slice.
  void tell_again() { tell_ = us_ != 0; }

 private:
  const StubPage& page_;
  std::uint32_t us_ = 0;  ///< the time slice last asked for, when groups_made_ groups had been made
  std::uint32_t groups_made_ = 0;
  bool tell_ = false;
};

}  // namespace gpuslice
