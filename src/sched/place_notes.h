// What the settings of slices may be thought to do, and do not, because of where in the tree they are. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sched/allocator.h"
#include "sched/slices.h"

namespace gpuctl::sched {

/// Lines for a person about these slices, each of which names its slice: a priority of which slices below have nothing,
/// and a target of latency to which slices elsewhere do not yield.
std::vector<std::string> place_notes(const Slices& slices, std::span<const std::string> paths);

/// "" unless slices, among them one of `paths`, have reserved the whole device. `nodes`: of the tree on that device, in
/// the order of `slices`. `name`: what to call it.
std::string all_reserved(const Slices& slices, std::span<const NodeInput> nodes, std::span<const std::string> paths,
                         CapSM device, const std::string& name);

}  // namespace gpuctl::sched
