// How long bursts and requests took, as people read it.
#pragma once

#include <string>
#include <vector>

#include "ipc/types.h"

namespace gpuctl::cli {

/// What was counted lately; null: nothing.
const ipc::Latency* lately(const std::vector<ipc::Latency>& latency);

/// "p99", say, of what was counted lately: "3.3 ms"; "-": nothing was.
std::string latency_text(const std::vector<ipc::Latency>& latency, double ipc::Latency::*percentile);

/// "12.4k bursts: p50 1.4 ms, p99 3.3 ms, p99.9 5.1 ms", of all and then of the last seconds. Empty: nothing was
/// counted.
std::vector<std::string> latency_lines(const std::vector<ipc::Latency>& latency);

/// A line for each GPU that the program has used: its latencies, or why it has none.
std::vector<std::string> latency_lines(const ipc::Client& client);

}  // namespace gpuctl::cli
