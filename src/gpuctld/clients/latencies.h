// How long the bursts and requests of programs took (base/latency_buckets.h): what a program's page counts of a device,
// and what that adds up to for slices. Time is an argument.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/stub.h"
#include "ipc/types.h"
#include "sched/latency/window.h"

namespace gpuctl::daemon {

/// Whether a program's bursts count, or the requests that it names.
enum class Counted { bursts, requests };

/// A program's first bursts are slow for reasons of their own, such as compilation: it has warmed up after so many, and
/// so long after the first was seen.
inline constexpr std::uint64_t kWarmUpBursts = 10, kWarmUpNs = 1'000'000'000;

/// What one program's page counts of a device. It takes memory only once there is something.
class ClientLatency {
 public:
  struct More {
    sched::LatencyHistogram histogram;
    Counted counted = Counted::bursts;
    bool warm = false;  ///< the program had warmed up before
  };
  /// What the page has counted since the last look; none: nothing. From the first request on, requests count alone, and
  /// what was known of bursts is forgotten. A page may say anything.
  std::optional<More> look(const ipc::LatencyCounts& page, std::uint64_t now_ns);
  /// In the window before the last look, and since the program came. Empty: nothing was counted.
  std::vector<ipc::Latency> describe() const;

 private:
  struct State {
    Counted counted = Counted::bursts;
    std::uint32_t number = 0;                           ///< ipc::LatencyCounts::counted
    std::array<std::uint32_t, kLatencyBuckets> seen{};  ///< of what counts
    /// There are thousands: they have longer steps than those of slices.
    sched::LatencyWindow window{sched::LatencyWindow::kUsual, 2};
    std::uint64_t first_ns = 0;  ///< when one was first seen
  };
  std::unique_ptr<State> state_;
  std::uint64_t looked_ns_ = 0;
};

/// For each slice the sum over programs that are or were in it or below it, since it was made or the daemon started.
class SliceLatencies {
 public:
  /// A program in `slice` counted more on the daemon's device.
  void add(std::string_view slice, int device, const ClientLatency::More& more, std::uint64_t now_ns);
  /// All so far, but those of programs that had not warmed up; null: none on that device.
  const sched::LatencyHistogram* warm(std::string_view slice, int device) const;
  /// Of all devices together: in the window that ends now, and all. Empty: nothing was counted.
  std::vector<ipc::Latency> describe(std::string_view slice, std::uint64_t now_ns) const;
  /// How long all of them took, by octaves.
  void add_up(std::string_view slice, ipc::SliceTotals& totals) const;
  /// Forgets slices that no longer exist: a new slice of the same name is another slice. Those above keep their sums.
  void keep(const std::function<bool(const std::string& slice)>& exists);

 private:
  struct Sum {
    bool bursts = false, requests = false;  ///< what was added
    sched::LatencyWindow window;            ///< of all devices
    std::map<int, sched::LatencyHistogram> warm;
  };
  std::map<std::string, Sum, std::less<>> by_slice_;
};

}  // namespace gpuctl::daemon
