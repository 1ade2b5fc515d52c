// How many SMs launches could use now.
#pragma once

#include <cstdint>

#include "libgpuslice/launch/outstanding.h"
#include "libgpuslice/launch/slots.h"

namespace gpuslice {

/// The caller holds the book's mutex. `sms`: SMs of the device, which the answer does not exceed.
std::uint32_t demand_of(const Launch& launch, const Slots& slots, std::uint32_t sms);

/// The demand of the launches that run, or of the next launch if that is more. The next one begins as soon as those
/// that run are complete, and should not have to ask for SMs then.
std::uint32_t demand_of(const Stream& stream, const Slots& slots, std::uint32_t sms);

}  // namespace gpuslice
