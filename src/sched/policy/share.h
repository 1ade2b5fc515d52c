#pragma once

#include "sched/policy.h"

namespace gpuctl::sched {

/// `share`: each child gets its floor. The rest is divided in proportion to the weights, until each has what it wants.
void divide_share(std::span<const Claim> claims, Due capacity, WaterFiller& filler, std::span<Due> dues);

}  // namespace gpuctl::sched
