#include "gpuctld/jobs/job_seat.h"

#include <algorithm>
#include <array>

namespace gpuctl::daemon {

std::optional<ipc::Head> JobSeat::head(bool by_stream, std::uint64_t now_ns) const {
  if (is_stream()) return client->stream_head(slot, place, now_ns);
  if (by_stream && client->reports_streams(slot)) return std::nullopt;
  return client->head(slot, now_ns);
}

std::uint64_t JobSeat::owner(const std::optional<ipc::Head>& head) const {
  // Addresses of clients have 47 bits, so the number of a stream lies mostly above them.
  const std::uint64_t stream = is_stream() && head ? head->stream : 0;
  return reinterpret_cast<std::uintptr_t>(client) ^ stream << 47;
}

std::string_view shown_state(const sched::Job* job) {
  if (job == nullptr) return "idle";
  if (job->state == sched::JobState::ready) return job->evictions > 0 ? "evicted" : "waiting";
  return sched::to_string(job->state);
}

std::string_view furthest_state(std::string_view a, std::string_view b) {
  static constexpr std::array<std::string_view, 6> kOrder{"idle",     "waiting", "evicted",
                                                          "to-evict", "to-run",  "running"};
  const auto place = [](std::string_view state) { return std::find(kOrder.begin(), kOrder.end(), state); };
  return place(a) < place(b) ? b : a;
}

}  // namespace gpuctl::daemon
