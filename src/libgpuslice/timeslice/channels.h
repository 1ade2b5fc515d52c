// The channel groups of this process, and their time slices.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

#include "ipc/stub.h"
#include "libgpuslice/timeslice/channel_calls.h"

namespace gpuslice {

/// The result of a request for a time slice.
struct TimeSliceResult {
  gpuctl::ipc::TimeSlice state = gpuctl::ipc::TimeSlice::not_tried;
  std::uint32_t us = 0;      ///< the time slice, if it is in force
  std::uint16_t groups = 0;  ///< groups that have it; if it is not in force: all groups
  std::uint32_t status = 0;  ///< the driver's status for a group that does not have it
};

/// Any thread. Allocates no memory and throws nothing, because it is called in the middle of the driver's calls.
class ChannelGroups {
 public:
  using Ioctl = int (*)(int fd, unsigned long request, void* argument);
  using IsControl = bool (*)(int fd);

  /// `ioctl` calls the C library's. `is_control` says whether a descriptor is /dev/nvidiactl. Neither is called before
  /// the first request that concerns channels.
  constexpr ChannelGroups(Ioctl ioctl, IsControl is_control) : ioctl_(ioctl), is_control_(is_control) {}

  /// The instance of this process.
  static ChannelGroups& get();

  /// Called after a request for which concerns_channels() is true succeeded. May change errno.
  void saw(int fd, std::uint32_t request, const void* argument);

  /// Changes whenever a group is added.
  std::uint32_t made() const { return __atomic_load_n(&made_, __ATOMIC_ACQUIRE); }

  /// Sets the time slice that a device of the program asks for (Grant::time_slice_us); `device` is below kMaxDevices.
  /// It is unknown which groups are on which device, so all groups get the shortest time slice that any device asks
  /// for. Takes about 10 us for each group that had another one. Blocks no other thread meanwhile, except in want().
  TimeSliceResult want(int device, std::uint32_t us);

  /// In a forked child: the groups are the parent's.
  void forget_after_fork();

 private:
  struct Group {
    int fd = 0;
    RmObject object;
    std::uint32_t drivers_us = 0;  ///< as the driver made it; 0: not read yet
    std::uint32_t us = 0;          ///< the one in force
    std::uint32_t refused = 0;     ///< status of the latest call, if it failed; 0: it succeeded
    std::uint32_t refused_us = 0;  ///< the time slice asked for then
  };
  /// Most groups; a context has some tens. Groups above this number stay as the driver made them.
  static constexpr std::size_t kMost = 512;

  Group* find(const Group& group);
  TimeSliceResult result(std::uint32_t target) const;
  void apply(Group group, std::uint32_t wanted);
  bool control(const Group& group, std::uint32_t command, std::uint64_t& us, std::uint32_t& status);

  Ioctl ioctl_;
  IsControl is_control_;
  std::mutex mutex_;    ///< guards what follows; not held over calls to the driver
  std::mutex wanting_;  ///< held by want(), which runs in one thread at a time; taken before mutex_
  std::uint32_t made_ = 0;
  std::size_t count_ = 0;
  std::array<Group, kMost> groups_{};
  std::array<std::uint32_t, gpuctl::ipc::kMaxDevices> wanted_{};
};

}  // namespace gpuslice
