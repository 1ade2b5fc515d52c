#include "gpuctld/jobs/fairness_reports.h"

#include <algorithm>

#include "gpuctld/clock.h"

namespace gpuctl::daemon {

namespace {

constexpr std::uint64_t kLongestNs = 3'600'000'000'000;
/// The GPU's clock is known to some microseconds.
constexpr std::uint64_t kClocksDifferNs = 10'000'000;

}  // namespace

void note_launch(sched::Fairness& fairness, Client& client, std::size_t index, const ipc::Record& launch,
                 sched::Time alone, std::uint64_t now_ns) {
  if (launch.done_ns > now_ns + kClocksDifferNs) return;
  const std::uint64_t done_ns = std::min(launch.done_ns, now_ns);
  if (launch.issued_ns >= done_ns || done_ns - launch.issued_ns > kLongestNs) return;
  Client::Slot& slot = client.slots()[index];
  if (slot.watched == 0) slot.watched = fairness.new_program();
  const std::optional<ipc::Head> oldest = client.head(index, now_ns);
  fairness.add(slot.watched, client.slice(),
               {.issued = instant(launch.issued_ns),
                .done = instant(done_ns),
                .alone = alone,
                .oldest_issued = oldest ? instant(oldest->issued_ns) : sched::kNever,
                .all_reported = (launch.evictions & ipc::kOriginalForm) == 0});
}

}  // namespace gpuctl::daemon
