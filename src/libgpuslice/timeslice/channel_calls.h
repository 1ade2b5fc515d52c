// The driver's calls to its kernel module that concern channel groups. These are the hardware's own queues of work; the
// GPU runs each for the length of its time slice. Pure.
//
// Calls and layouts are those that NVIDIA's open kernel modules publish: RM_ALLOC, RM_FREE and RM_CONTROL on
// /dev/nvidiactl, the class KEPLER_CHANNEL_GROUP_A, and its commands SET_TIMESLICE and GET_TIMESLICE. This file has
// only the needed parts, by number and offset.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace gpuslice {

/// Requests as whole numbers: direction, size of the argument, 'F', and the call.
inline constexpr std::uint32_t kRmFree = 0xc0104629;
inline constexpr std::uint32_t kRmControl = 0xc020462a;
inline constexpr std::uint32_t kRmAlloc = 0xc020462b;
inline constexpr std::uint32_t kRmAllocWithRights = 0xc030462b;

inline constexpr std::uint32_t kChannelGroupClass = 0xa06c;
inline constexpr std::uint32_t kSetTimeSlice = 0xa06c0103;
inline constexpr std::uint32_t kGetTimeSlice = 0xa06c0104;

/// An object of the kernel module, with the handles that the driver gave it.
struct RmObject {
  std::uint32_t client = 0, parent = 0, object = 0;
  bool operator==(const RmObject&) const = default;
};

/// Whether a request may make or free channel groups. Most calls cost no more than this check.
constexpr bool concerns_channels(std::uint32_t request) {
  return request == kRmAlloc || request == kRmAllocWithRights || request == kRmFree;
}

/// The channel group that this request made. `argument` is in the state in which the kernel returned it, with the size
/// that the request states.
std::optional<RmObject> made_channel_group(std::uint32_t request, const void* argument);

/// The object that this request freed, with everything below it. If object and client are equal, it is everything of
/// that client.
std::optional<RmObject> freed_object(std::uint32_t request, const void* argument);

/// The argument of RM_CONTROL that reads or sets a channel group's time slice. It refers to `us`, in microseconds.
using RmControl = std::array<std::byte, 32>;
RmControl time_slice_call(const RmObject& group, std::uint32_t command, std::uint64_t& us);

/// The kernel module's status after such a call; 0: success.
std::uint32_t status_of(const RmControl& call);
/// Whether the status says that the group does not exist (any more).
constexpr bool says_gone(std::uint32_t status) {
  return status == 0x23 || status == 0x31 || status == 0x33 || status == 0x57;  // client, object, handle, not found
}

}  // namespace gpuslice
