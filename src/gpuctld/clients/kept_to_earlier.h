// Whom a max that is raised leaves out: programs that MPS keeps to fewer SMs until they end.
#pragma once

#include <list>
#include <string>
#include <vector>

#include "gpuctld/clients/client.h"
#include "sched/slice_tree.h"

namespace gpuctl::daemon {

/// A line for each slice whose own max is greater in `after` than in `before`, if MPS keeps programs in it or below it
/// to fewer SMs than their slices may have in `after`: how many. Each client's slice is in `after`.
std::vector<std::string> kept_to_earlier_max(const sched::SliceTree& before, const sched::SliceTree& after,
                                             const std::list<Client>& clients);

}  // namespace gpuctl::daemon
