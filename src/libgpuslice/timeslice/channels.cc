#include "libgpuslice/timeslice/channels.h"

#include <algorithm>
#include <new>

namespace gpuslice {

using gpuctl::ipc::kDriversTimeSlice;
using gpuctl::ipc::TimeSlice;

namespace {

/// Stands for a status: the driver did not return the group's time slice.
constexpr std::uint32_t kSaysNothing = 0xffffffff;

}  // namespace

void ChannelGroups::saw(int fd, std::uint32_t request, const void* argument) {
  if (const auto freed = freed_object(request, argument)) {
    std::lock_guard lock(mutex_);
    const auto gone = [&](const Group& group) {
      if (group.object.client != freed->client) return false;
      return freed->object == group.object.object || freed->object == group.object.parent ||
             freed->object == freed->client;
    };
    count_ =
        static_cast<std::size_t>(std::remove_if(groups_.begin(), groups_.begin() + count_, gone) - groups_.begin());
    return;
  }
  const auto made = made_channel_group(request, argument);
  if (!made || !is_control_(fd)) return;
  std::lock_guard lock(mutex_);
  if (count_ == kMost) return;
  groups_[count_] = {};
  groups_[count_].fd = fd;
  groups_[count_++].object = *made;
  __atomic_store_n(&made_, made_ + 1, __ATOMIC_RELEASE);
}

/// The current entry of the same group. The caller holds mutex_.
ChannelGroups::Group* ChannelGroups::find(const Group& group) {
  const auto found = std::find_if(groups_.begin(), groups_.begin() + count_, [&](const Group& other) {
    return other.fd == group.fd && other.object == group.object;
  });
  return found == groups_.begin() + count_ ? nullptr : &*found;
}

/// Returns false if the group no longer exists. The descriptor may have been closed, and may name another file now.
bool ChannelGroups::control(const Group& group, std::uint32_t command, std::uint64_t& us, std::uint32_t& status) {
  if (!is_control_(group.fd)) return false;
  RmControl call = time_slice_call(group.object, command, us);
  if (ioctl_(group.fd, kRmControl, call.data()) != 0) return false;
  status = status_of(call);
  return !says_gone(status);
}

void ChannelGroups::apply(Group group, std::uint32_t wanted) {
  std::uint64_t us = 0;
  std::uint32_t status = 0;
  bool there = true;
  if (group.drivers_us == 0) {
    there = control(group, kGetTimeSlice, us, status);
    if (there && status == 0)
      group.drivers_us = static_cast<std::uint32_t>(std::min<std::uint64_t>(us, kDriversTimeSlice - 1));
  }
  const bool as_made = wanted == 0 || wanted == kDriversTimeSlice;
  // Setting the value that was read would not restore it exactly, so nothing is set.
  if (there && as_made && group.us == 0) {
    group.us = group.drivers_us;
  } else if (there && group.drivers_us != 0) {
    us = as_made ? group.drivers_us : wanted;
    there = control(group, kSetTimeSlice, us, status);
    if (there && status == 0) group.us = static_cast<std::uint32_t>(us);
  }
  // If the driver does not return the original time slice, that could not be restored later. So the group is left
  // alone.
  group.refused = status != 0 || group.drivers_us != 0 ? status : kSaysNothing;
  group.refused_us = wanted;
  std::lock_guard lock(mutex_);
  Group* now = find(group);
  if (!now) return;
  if (there)
    *now = group;
  else
    *now = groups_[--count_];
}

TimeSliceResult ChannelGroups::want(int device, std::uint32_t us) {
  std::lock_guard one(wanting_);
  wanted_[static_cast<std::size_t>(device)] = us;
  std::uint32_t target = 0;  // 0: no device asks for one
  for (const std::uint32_t wanted : wanted_) {
    if (wanted != 0) target = target == 0 ? wanted : std::min(target, wanted);
  }
  const auto differs = [target](const Group& group) {
    if (group.refused != 0 && group.refused_us == target) return false;
    if (target == 0) return group.us != 0 && group.us != group.drivers_us;
    return group.us == 0 || group.us != (target == kDriversTimeSlice ? group.drivers_us : target);
  };
  for (std::size_t tries = 0; tries < 2 * kMost; ++tries) {
    Group next;
    {
      std::lock_guard lock(mutex_);
      const auto found = std::find_if(groups_.begin(), groups_.begin() + count_, differs);
      if (found == groups_.begin() + count_) break;
      next = *found;
    }
    apply(next, target);
  }
  std::lock_guard lock(mutex_);
  return result(target);
}

/// The caller holds mutex_.
TimeSliceResult ChannelGroups::result(std::uint32_t target) const {
  TimeSliceResult result{.groups = static_cast<std::uint16_t>(count_)};
  if (target == 0) return result;
  std::uint16_t having = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    if (groups_[i].refused != 0) {
      result.status = groups_[i].refused;
      continue;
    }
    ++having;
    result.us = std::max(result.us, groups_[i].us);
  }
  result.state = count_ == 0 ? TimeSlice::no_groups : having > 0 ? TimeSlice::in_force : TimeSlice::refused;
  if (having > 0) result.groups = having;
  return result;
}

void ChannelGroups::forget_after_fork() {
  const Ioctl ioctl = ioctl_;
  const IsControl is_control = is_control_;
  new (this) ChannelGroups(ioctl, is_control);
}

}  // namespace gpuslice
