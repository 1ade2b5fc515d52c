// What `top` shows, computed from two replies of Monitor. Pure.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ipc/types.h"

namespace gpuctl::cli {

struct TopDevice {
  std::int64_t index = 0;
  std::string name;
  std::string mode;
  std::int64_t sms = 0;
  std::int64_t granted = 0;  ///< to all that run at a time, the most of any turn
  std::int64_t holding = 0;
  bool counted = false;   ///< some program's kernels say which SMs they hold
  bool in_turns = false;  ///< programs that were granted SMs take turns: each has its own in its turn
};

/// One client on one device. An empty value: not known yet, or nothing happened between the two samples.
struct TopClient {
  const ipc::Client* client = nullptr;
  const ipc::ClientUsage* usage = nullptr;  ///< null: the client uses no device
  std::optional<double> launches_per_s;
  std::optional<double> evictions_per_s;
  std::optional<double> latency_us_p50;  ///< of the launches completed between the samples
  std::optional<double> latency_us_p99;
  std::optional<double>
      busy;  ///< the part of the time in which it had launches outstanding; where the library knows it

  /// Whether it says which SMs it holds. Kernels in original form do not.
  bool holds_counted() const;
  /// What it did between the samples. "idle" and "running" are what it does at a moment.
  std::string state() const;
};

struct TopModel {
  std::vector<TopDevice> devices;
  std::vector<TopClient> clients;  ///< by slice, then pid, then device
};

/// Refers to `now`. `before` may be null; then there are no rates.
TopModel make_top_model(const ipc::Snapshot* before, const ipc::Snapshot& now);

/// SMs that programs in and below the slice are granted at a time, or want, on all devices together: no more than a
/// device has.
struct SliceSms {
  std::int64_t granted = 0;
  std::int64_t demand = 0;
};
SliceSms slice_sms(const ipc::Snapshot& now, const std::string& slice);

/// The value below which `fraction` of the counted events lie. Bucket i of `log2_histogram` counts [2^i, 2^(i+1));
/// inside a bucket events are assumed to be evenly spread. In the last bucket of the library
/// (stub.h) it is where that begins: it has all that took longer. Empty if nothing was counted.
std::optional<double> percentile(const std::vector<std::int64_t>& log2_histogram, double fraction);

/// `now` minus `before`, bucket by bucket; empty if a bucket shrank (another process under the same pid).
std::optional<std::vector<std::int64_t>> difference(const std::vector<std::int64_t>& now,
                                                    const std::vector<std::int64_t>& before);

/// One line of `top --json`: the reply of Monitor, in which each usage also has launches_per_s, evictions_per_s,
/// latency_us_p50 and latency_us_p99 (null if not known).
boost::json::object top_json(const ipc::Snapshot* before, const ipc::Snapshot& now);

}  // namespace gpuctl::cli
