#include "libgpuslice/agent/time_slice_watch.h"

#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/watching_tool.h"
#include "libgpuslice/timeslice/channels.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;

void TimeSliceWatch::look(int device_index) {
  if (!page_.grant()) return;
  ChannelGroups& groups = ChannelGroups::get();
  std::uint32_t us = ipc::load(page_.grant()->time_slice_us);
  // In turns of 1 us a profiler's measured kernel never ends.
  if (us != 0 && tool_watches()) us = ipc::kDriversTimeSlice;
  const std::uint32_t made = groups.made();
  if (!tell_ && us == us_ && (us == 0 || made == groups_made_)) return;
  tell_ = false;
  us_ = us;
  groups_made_ = made;
  const TimeSliceResult result = groups.want(device_index, us);
  ipc::Usage& out = *page_.usage();
  ipc::store(out.time_slice_us, result.us);
  ipc::store(out.channel_groups, result.groups);
  ipc::store(out.time_slice_state, static_cast<std::uint16_t>(result.state));
  debug("time slice %u us wanted: %u us on %u channel groups, state %u, status 0x%x", us, result.us, result.groups,
        static_cast<unsigned>(result.state), result.status);
}

}  // namespace gpuslice
