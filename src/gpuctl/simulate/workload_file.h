// Workloads for `gpuctl simulate`, from TOML. tests/workloads/ has examples, docs/design/simulator.md describes every
// key.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "sched/simulator/workload.h"

namespace gpuctl::cli {

/// `file` is for error messages: "FILE:LINE:COLUMN: FIELD: what is wrong".
Result<sched::Workload> parse_workload(std::string_view text, const std::string& file);

Result<sched::Workload> read_workload(const std::string& path);

}  // namespace gpuctl::cli
