// What processes have mapped, as far as it says how they use a GPU.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gpuctld/host/gpu_users.h"
#include "gpuctld/protocol/process.h"

namespace gpuctl::daemon {

struct Mapped {
  bool library = false;  ///< which is there in a child of such a program too
  bool driver = false;
};

struct MapsPatience {
  std::chrono::milliseconds one{1'000};   ///< with one process
  std::chrono::milliseconds all{10'000};  ///< then nobody is looked into any more
};

/// By pid, of those whose turn came. Whose mappings were not read in time seems to have nothing mapped. The next turn
/// is that of the user whose processes took the least time so far, and of his the first one.
std::map<std::int32_t, Mapped> mapped_by(const std::vector<GpuUser>& users, const MapsPatience& patience = {},
                                         const std::string& proc = kProc);

}  // namespace gpuctl::daemon
