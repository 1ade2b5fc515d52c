// What of the driver's calls to its kernel module concerns channel groups: the hardware's own queues of work, which
// take turns on the GPU for as long as their time slice. Pure.
//
// Calls and layouts are those that NVIDIA's open kernel modules publish: RM_ALLOC, RM_FREE and RM_CONTROL on
// /dev/nvidiactl, the class KEPLER_CHANNEL_GROUP_A, and its commands SET_TIMESLICE and GET_TIMESLICE. Written down here
// is what is needed of them, by number and offset.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace gpuslice {

/// Requests by their whole number: direction, size of the argument, 'F', and the call.
inline constexpr std::uint32_t kRmFree = 0xc0104629;
inline constexpr std::uint32_t kRmControl = 0xc020462a;
inline constexpr std::uint32_t kRmAlloc = 0xc020462b;
inline constexpr std::uint32_t kRmAllocWithRights = 0xc030462b;

inline constexpr std::uint32_t kChannelGroupClass = 0xa06c;
inline constexpr std::uint32_t kSetTimeSlice = 0xa06c0103;
inline constexpr std::uint32_t kGetTimeSlice = 0xa06c0104;

/// An object of the kernel module, by the handles that the driver gave it.
struct RmObject {
  std::uint32_t client = 0, parent = 0, object = 0;
  bool operator==(const RmObject&) const = default;
};

/// Whether a request may make or free channel groups: all that most calls cost.
constexpr bool concerns_channels(std::uint32_t request) {
  return request == kRmAlloc || request == kRmAllocWithRights || request == kRmFree;
}

/// The channel group that this request made. `argument` is as the kernel left it, of the size that the request says.
std::optional<RmObject> made_channel_group(std::uint32_t request, const void* argument);

/// What this request freed; all of a client where object and client are the same, and whatever stands below it.
std::optional<RmObject> freed_object(std::uint32_t request, const void* argument);

/// The argument of RM_CONTROL that asks for, or sets, a channel group's time slice. It refers to `us`, in microseconds.
using RmControl = std::array<std::byte, 32>;
RmControl time_slice_call(const RmObject& group, std::uint32_t command, std::uint64_t& us);

/// The kernel module's answer to such a call; 0 is success.
std::uint32_t status_of(const RmControl& call);
/// It says that there is no such group (any more).
constexpr bool says_gone(std::uint32_t status) {
  return status == 0x23 || status == 0x31 || status == 0x33 || status == 0x57;  // client, object, handle, not found
}

}  // namespace gpuslice
