// Streams as jobs of their own, where the policy for jobs asks for it (ipc::kStreamsAreJobs): gives each stream with
// work a place, tells the daemon of its head there, and holds the streams that do not have their turn
// (stream_turns.h). A held stream's kernels in persistent form get no SMs (Stream::held); its launches in original form
// wait in their threads (gated()).
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "libgpuslice/client/grant_view.h"
#include "libgpuslice/launch/launch_book.h"
#include "libgpuslice/launch/opaque_work.h"
#include "libgpuslice/streams/stream_levels.h"
#include "libgpuslice/streams/stream_turns.h"

namespace gpuslice {

/// The caller holds the book's mutex.
class StreamJobs {
 public:
  /// All three outlive this object.
  StreamJobs(const GrantView& view, LaunchBook& book, const OpaqueWork& opaque)
      : view_(view), book_(book), opaque_(opaque) {}

  /// Decides anew which streams are held. Returns whether Stream::held changed for any, so that the grant must be
  /// divided anew. Called whenever the agent looks, and before the first launch of a stream is planned.
  bool look(std::uint64_t now_ns);
  /// Whether a launch in original form into this stream must wait, as of the latest look.
  bool gated(const StreamKey& stream) const;

  /// Writes the heads of all places. `each`: the daemon wants to hear of each head. Returns whether it must be told
  /// now.
  bool publish(bool each);
  /// The daemon has another stub page, which shows nothing yet.
  void forget_told();

 private:
  /// What a stream has to do.
  struct Work {
    Stream* persistent = nullptr;
    const OpaqueWork::InStream* original = nullptr;
  };
  struct Place {
    bool taken = false;
    StreamKey stream{};
    StreamLevels::Known known;
    std::uint64_t told = 0;         ///< ipc::Head::launch as last written
    std::uint64_t original_ns = 0;  ///< OpaqueJob::issued_ns of the launch in original form that was last the head ...
    std::uint64_t original = 0;     ///< ... and the number that it was given
  };
  void find_work();
  void seat_streams();
  StreamTurns::Place turn_place(const Place& place) const;
  bool hold();
  bool publish_place(std::uint32_t index, bool each);

  const GrantView& view_;
  LaunchBook& book_;
  const OpaqueWork& opaque_;
  std::map<StreamKey, Work> work_;  ///< as last found
  std::array<Place, gpuctl::ipc::kStreamPlaces> places_;
  StreamTurns turns_;
  StreamTurns::Held held_;
  bool on_ = false;  ///< streams are jobs, as last seen
};

}  // namespace gpuslice
