#include "libgpuslice/timeslice/channel_calls.h"

#include <cstring>

namespace gpuslice {

namespace {

std::uint32_t word(const void* argument, std::size_t offset) {
  std::uint32_t value;
  std::memcpy(&value, static_cast<const std::byte*>(argument) + offset, sizeof value);
  return value;
}

}  // namespace

std::optional<RmObject> made_channel_group(std::uint32_t request, const void* argument) {
  if (!argument || (request != kRmAlloc && request != kRmAllocWithRights)) return std::nullopt;
  const std::uint32_t status = word(argument, request == kRmAlloc ? 28 : 40);
  if (status != 0 || word(argument, 12) != kChannelGroupClass) return std::nullopt;
  return RmObject{word(argument, 0), word(argument, 4), word(argument, 8)};
}

std::optional<RmObject> freed_object(std::uint32_t request, const void* argument) {
  if (!argument || request != kRmFree || word(argument, 12) != 0) return std::nullopt;
  return RmObject{word(argument, 0), word(argument, 4), word(argument, 8)};
}

RmControl time_slice_call(const RmObject& group, std::uint32_t command, std::uint64_t& us) {
  RmControl call{};
  const auto put = [&call](std::size_t offset, const auto& value) {
    std::memcpy(call.data() + offset, &value, sizeof value);
  };
  put(0, group.client);
  put(4, group.object);
  put(8, command);
  put(16, std::uint64_t{reinterpret_cast<std::uintptr_t>(&us)});
  put(24, std::uint32_t{sizeof us});
  return call;
}

std::uint32_t status_of(const RmControl& call) {
  return word(call.data(), 28);
}

}  // namespace gpuslice
