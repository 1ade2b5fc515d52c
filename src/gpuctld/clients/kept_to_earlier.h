// Whom a max that is raised leaves out: programs that MPS keeps to fewer SMs until they end.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <string>

#include "gpuctld/clients/client.h"
#include "sched/slice_tree.h"

namespace gpuctl::daemon {

/// By each slice whose own max is greater in `after` than in `before`: the number of programs in it and below it that
/// MPS keeps to fewer SMs than their slices may have in `after`. Slices without such programs are left out. Each
/// client's slice is in `after`.
std::map<std::string, std::size_t> kept_to_earlier_max(const sched::SliceTree& before, const sched::SliceTree& after,
                                                       const std::list<Client>& clients);

}  // namespace gpuctl::daemon
