#include "gpuctl/views/top_model.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <tuple>

#include "gpuctl/views/kernel_lines.h"
#include "ipc/codec.h"
#include "ipc/stub.h"
#include "sched/slices.h"

namespace gpuctl::cli {
namespace {

/// The last one of the library's histogram has all that took longer, too.
constexpr std::size_t kLog2Buckets = std::size(decltype(ipc::Usage::latency_us_log2){});

const ipc::ClientUsage* find_usage(const ipc::Snapshot& snapshot, std::int64_t pid, std::int64_t device) {
  for (const ipc::Client& client : snapshot.clients) {
    if (client.pid != pid) continue;
    for (const ipc::ClientUsage& usage : client.usage)
      if (usage.device == device) return &usage;
  }
  return nullptr;
}

TopClient rates(const ipc::Snapshot* before, const ipc::Snapshot& now, const ipc::Client& client,
                const ipc::ClientUsage& usage) {
  TopClient row{&client, &usage};
  if (before == nullptr || now.time_ns <= before->time_ns) return row;
  const ipc::ClientUsage* old = find_usage(*before, client.pid, usage.device);
  if (old == nullptr || usage.launches < old->launches || usage.evictions < old->evictions) return row;
  const double seconds = static_cast<double>(now.time_ns - before->time_ns) / 1e9;
  row.launches_per_s = static_cast<double>(usage.launches - old->launches) / seconds;
  row.evictions_per_s = static_cast<double>(usage.evictions - old->evictions) / seconds;
  if (usage.busy_us > old->busy_us)
    row.busy = std::min(1.0, static_cast<double>(usage.busy_us - old->busy_us) / 1e6 / seconds);
  if (const auto latencies = difference(usage.latency_us_log2, old->latency_us_log2)) {
    row.latency_us_p50 = percentile(*latencies, 0.50);
    row.latency_us_p99 = percentile(*latencies, 0.99);
  }
  return row;
}

/// What programs have of one device. Outside of MPS each has the device to itself in its turn, so their SMs do not add
/// up; those of MPS have their turn together.
class Turns {
 public:
  explicit Turns(const ipc::Device& device) : device_(device) {}

  void add(const ipc::Client& client, const ipc::ClientUsage& usage) {
    if (device_.mode == "time-sliced" || client.isolated.value_or(false)) {
      finish({usage.granted, usage.holding});
    } else {
      together_.granted += usage.granted;
      together_.holding += usage.holding;
    }
  }

  struct Turn {
    std::int64_t granted = 0, holding = 0;
  };
  /// The most of any.
  Turn most() const {
    return {std::min(std::max(most_.granted, together_.granted), device_.sms),
            std::min(std::max(most_.holding, together_.holding), device_.sms)};
  }
  /// Whether there are several in which SMs are granted.
  bool several() const { return turns_ + (together_.granted > 0 ? 1 : 0) > 1; }

 private:
  void finish(const Turn& turn) {
    most_ = {std::max(most_.granted, turn.granted), std::max(most_.holding, turn.holding)};
    if (turn.granted > 0) ++turns_;
  }

  const ipc::Device& device_;
  Turn most_, together_;
  int turns_ = 0;
};

/// A program that sees eight GPUs and uses one gets one line.
bool worth_a_line(const ipc::ClientUsage& usage) {
  return usage.launches != 0 || usage.demand != 0 || usage.granted != 0 || usage.holding != 0;
}

}  // namespace

bool TopClient::holds_counted() const {
  return usage != nullptr && (usage->holding != 0 || (usage->mode != "free" && usage->common_sms == 0));
}

std::string TopClient::state() const {
  if (usage == nullptr) return client->state;
  if (!launches_per_s || (client->state != "idle" && client->state != "running")) return printable(client->state);
  return *launches_per_s > 0 || busy || usage->outstanding > 0 ? "running" : "idle";
}

SliceSms slice_sms(const ipc::Snapshot& now, const std::string& slice) {
  SliceSms sum;
  for (const ipc::Device& device : now.devices) {
    Turns turns(device);
    for (const ipc::Client& client : now.clients)
      for (const ipc::ClientUsage& usage : client.usage)
        if (usage.device == device.index && sched::in_or_below(client.slice, slice)) {
          turns.add(client, usage);
          sum.demand += usage.demand;
        }
    sum.granted += turns.most().granted;
  }
  return sum;
}

std::optional<double> percentile(const std::vector<std::int64_t>& histogram, double fraction) {
  const auto total = std::accumulate(histogram.begin(), histogram.end(), std::int64_t{0});
  if (total <= 0) return std::nullopt;
  const double rank = fraction * static_cast<double>(total);
  double below = 0;
  for (std::size_t i = 0; i < histogram.size(); ++i) {
    const auto here = static_cast<double>(histogram[i]);
    if (here > 0 && below + here >= rank) {
      const double start = std::ldexp(1.0, static_cast<int>(i));
      if (i + 1 == kLog2Buckets) return start;
      return start + start * (rank - below) / here;
    }
    below += here;
  }
  return std::ldexp(1.0, static_cast<int>(histogram.size()));
}

std::optional<std::vector<std::int64_t>> difference(const std::vector<std::int64_t>& now,
                                                    const std::vector<std::int64_t>& before) {
  std::vector<std::int64_t> result = now;
  if (before.size() > now.size()) return std::nullopt;
  for (std::size_t i = 0; i < before.size(); ++i)
    if ((result[i] -= before[i]) < 0) return std::nullopt;
  return result;
}

TopModel make_top_model(const ipc::Snapshot* before, const ipc::Snapshot& now) {
  TopModel model;
  for (const ipc::Device& d : now.devices) {
    TopDevice& device = model.devices.emplace_back(TopDevice{d.index, d.name, d.mode, d.sms});
    Turns turns(d);
    for (const ipc::Client& client : now.clients)
      for (const ipc::ClientUsage& usage : client.usage) {
        if (usage.device != d.index) continue;
        turns.add(client, usage);
        device.counted |= TopClient{&client, &usage}.holds_counted();
      }
    device.granted = turns.most().granted;
    device.holding = turns.most().holding;
    device.in_turns = turns.several();
  }
  for (const ipc::Client& client : now.clients) {
    bool shown = false;
    for (const ipc::ClientUsage& usage : client.usage) {
      if (!worth_a_line(usage)) continue;
      model.clients.push_back(rates(before, now, client, usage));
      shown = true;
    }
    if (!shown) {
      model.clients.push_back(client.usage.empty() ? TopClient{&client, nullptr}
                                                   : rates(before, now, client, client.usage.front()));
    }
  }
  std::stable_sort(model.clients.begin(), model.clients.end(), [](const TopClient& a, const TopClient& b) {
    return std::tie(a.client->slice, a.client->pid) < std::tie(b.client->slice, b.client->pid);
  });
  return model;
}

boost::json::object top_json(const ipc::Snapshot* before, const ipc::Snapshot& now) {
  boost::json::object object = to_json(now);
  const auto value = [](const std::optional<double>& number) {
    return number ? boost::json::value(*number) : boost::json::value(nullptr);
  };
  for (std::size_t c = 0; c < now.clients.size(); ++c) {
    boost::json::array& usages = object["clients"].as_array()[c].as_object()["usage"].as_array();
    for (std::size_t u = 0; u < usages.size(); ++u) {
      const TopClient row = rates(before, now, now.clients[c], now.clients[c].usage[u]);
      boost::json::object& usage = usages[u].as_object();
      usage["launches_per_s"] = value(row.launches_per_s);
      usage["evictions_per_s"] = value(row.evictions_per_s);
      usage["latency_us_p50"] = value(row.latency_us_p50);
      usage["latency_us_p99"] = value(row.latency_us_p99);
    }
  }
  return object;
}

}  // namespace gpuctl::cli
