// The channel groups of this process, and their time slices.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

#include "ipc/stub.h"
#include "libgpuslice/timeslice/channel_calls.h"

namespace gpuslice {

/// What became of a time slice that was asked for.
struct TimeSliceResult {
  gpuctl::ipc::TimeSlice state = gpuctl::ipc::TimeSlice::not_tried;
  std::uint32_t us = 0;      ///< when in force
  std::uint16_t groups = 0;  ///< that have it; otherwise that there are
  std::uint32_t status = 0;  ///< the driver's, of a group that has not
};

/// Any thread. Allocates nothing and throws nothing: it hears of groups in the middle of the driver's calls.
class ChannelGroups {
 public:
  using Ioctl = int (*)(int fd, unsigned long request, void* argument);
  using IsControl = bool (*)(int fd);

  /// `ioctl` as the C library has it; `is_control` says whether a descriptor is /dev/nvidiactl. Neither is called
  /// before the first request that concerns channels.
  constexpr ChannelGroups(Ioctl ioctl, IsControl is_control) : ioctl_(ioctl), is_control_(is_control) {}

  /// The one of this process.
  static ChannelGroups& get();

  /// A request for which concerns_channels() holds succeeded. May change errno.
  void saw(int fd, std::uint32_t request, const void* argument);

  /// Changes whenever there is a group more.
  std::uint32_t made() const { return __atomic_load_n(&made_, __ATOMIC_ACQUIRE); }

  /// The time slice that a device of the program asks for (Grant::time_slice_us), at most kMaxDevices of them. Which
  /// groups are on which device is not known, so all get the shortest that any device asks for. Some 10 us a group that
  /// has another one; blocks nobody meanwhile.
  TimeSliceResult want(int device, std::uint32_t us);

  /// In a forked child: the groups are the parent's.
  void forget_after_fork();

 private:
  struct Group {
    int fd = 0;
    RmObject object;
    std::uint32_t drivers_us = 0;  ///< what it was before; 0: not changed yet
    std::uint32_t us = 0;          ///< in force
    std::uint32_t refused = 0;     ///< status of the latest call; 0: none was refused
    std::uint32_t refused_us = 0;  ///< what was asked for then
  };
  static constexpr std::size_t kMost = 512;  ///< a context has some tens; those beyond keep what the driver made

  Group* find(const Group& group);
  TimeSliceResult result(std::uint32_t target) const;
  void apply(Group group, std::uint32_t wanted);
  bool control(const Group& group, std::uint32_t command, std::uint64_t& us, std::uint32_t& status);

  Ioctl ioctl_;
  IsControl is_control_;
  std::mutex mutex_;    ///< guards what follows; not held over calls
  std::mutex wanting_;  ///< of want(): one thread at a time; before mutex_
  std::uint32_t made_ = 0;
  std::size_t count_ = 0;
  std::array<Group, kMost> groups_{};
  std::array<std::uint32_t, gpuctl::ipc::kMaxDevices> wanted_{};
};

}  // namespace gpuslice
