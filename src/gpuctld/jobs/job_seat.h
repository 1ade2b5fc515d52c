// A seat is where a job of a client may be under a policy for jobs: the client on a device, or where streams are jobs
// (sched::schedules_streams()) one of the client's streams there.
//
// A client that reports no stream, because it is older or because only streams beyond ipc::kStreamPlaces have work, is
// one job as elsewhere. Streams of one client share its grant. So which of them goes first is told to the client as
// turns (ipc::turns_of()); a stream has left as soon as the page says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "gpuctld/clients/client.h"
#include "sched/temporal/scheduler.h"

namespace gpuctl::daemon {

struct JobSeat {
  static constexpr std::uint32_t kWhole = UINT32_MAX;  ///< Seat::place: not of a stream

  Client* client;
  std::size_t slot;
  std::int32_t priority;
  std::uint32_t place = kWhole;  ///< ipc::kStreamPlaces

  bool is_stream() const { return place != kWhole; }
  ClientSlot& at() const { return client->slots()[slot]; }
  ClientJob& job() const { return is_stream() ? at().stream_jobs[place] : at().job; }
  /// The launch that the client reports there. Of the client as a whole none, while streams are jobs (`by_stream`) and
  /// it reports one.
  std::optional<ipc::Head> head(bool by_stream, std::uint64_t now_ns) const;
  /// Whether what the client is granted is for this job too, as the page says.
  bool in_turn() const { return !is_stream() || (ipc::turns_of(at().terms.jobs) >> place & 1) != 0; }
  /// Names the stream in fair shares, or the client.
  std::uint64_t owner(const std::optional<ipc::Head>& head) const;
};

/// What the jobs of one client have together.
struct SharedPart {
  std::uint32_t jobs = 0;
  sched::CapSM granted{};
  sched::CapSM need{};      ///< of those that are granted something
  std::uint32_t turns = 0;  ///< places of streams that are granted something, as bits
};

/// The state of a job as shown: "waiting", "evicted", "to-run", "running", "to-evict", or "idle" if it is null.
std::string_view shown_state(const sched::Job* job);

/// Of several states, the one to show for the client: that of the job that is furthest.
std::string_view furthest_state(std::string_view a, std::string_view b);

}  // namespace gpuctl::daemon
