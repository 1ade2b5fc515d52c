// What Record of io.gpuctl streams: launches that ended. They make a workload that gpuctl simulate replays.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>

#include "ipc/fields.h"

namespace gpuctl::ipc {

/// Type Launch of the interface. Instants are CLOCK_MONOTONIC.
struct Launch {
  std::int64_t pid = 0;
  std::string slice;
  std::string kernel;
  std::int64_t device = 0;    ///< the daemon's index
  std::int64_t priority = 0;  ///< of the slice; so is the next
  std::int64_t weight = 1;
  std::int64_t issued_ns = 0;
  std::int64_t done_ns = 0;
  double alone_us = 0;  ///< alone on the whole GPU
  double block_task_us = 0;
  std::int64_t capsm = 1;  ///< the most it could fill
  std::int64_t evictions = 0;
  double evict_us = 0;  ///< mean time of one eviction
};

boost::json::object to_json(const Launch& launch);
void read(Fields& fields, Launch& launch);

}  // namespace gpuctl::ipc
