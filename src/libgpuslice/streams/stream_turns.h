// Which of a program's streams are held while others of its streams have their turn. Pure: time is an argument.
//
// A policy for jobs may take each stream for a job of its own. Then the daemon says which streams have their turn. The
// others are held: their kernels in persistent form get no SMs, and their launches in original form wait in their
// threads. But a program's streams depend on each other in ways that nobody outside can see: by events, by the legacy
// default stream, by a host that waits for one stream before it lets another go on, by a kernel that waits for a word
// in memory. So a stream is held only as long as a stream that has its turn is seen to get on
// (docs/design/streams.md). If nothing that has its turn gets on, nothing is held, and the program runs as it would
// without us: it never stands still because of a priority.
#pragma once

#include <array>
#include <cstdint>

#include "ipc/stub.h"

namespace gpuslice {

class StreamTurns {
 public:
  /// A kernel that is known to run counts as waiting for something if none of its block-tasks is claimed and no launch
  /// of its stream ends for so long. Longer than block-tasks are.
  static constexpr std::uint64_t kRunsNs = 100'000'000;
  /// Work that was launched, and that may wait for another stream on the GPU, counts as waiting after this time.
  static constexpr std::uint64_t kBeginsNs = 10'000'000;
  /// A stream is held no longer than this in one go ...
  static constexpr std::uint64_t kLongestHoldNs = 2'000'000'000;
  /// ... and is then free for this long. A program may launch in one stream until another one has done something.
  static constexpr std::uint64_t kFreeNs = 100'000'000;

  /// What is known of the stream at a place (ipc::kStreamPlaces).
  struct Place {
    bool busy = false;           ///< it has work
    bool begun = false;          ///< its oldest work is known to run on the GPU
    std::uint64_t progress = 0;  ///< changes when it gets on
  };
  using Places = std::array<Place, gpuctl::ipc::kStreamPlaces>;

  /// Places as bits.
  struct Held {
    std::uint32_t evicted = 0;  ///< get no SMs
    std::uint32_t gated = 0;    ///< begin no launch in original form
    bool operator==(const Held&) const = default;
  };
  /// `turns`: the places that have their turn, as bits; 0: nobody is held. `now_ns`: CLOCK_MONOTONIC, never less than
  /// before.
  Held look(const Places& places, std::uint32_t turns, std::uint64_t now_ns);

 private:
  struct Seen {
    std::uint64_t progress = 0;
    std::uint64_t advanced_ns = 0;  ///< when `progress` last changed, or it got its turn
    std::uint64_t held_ns = 0;      ///< since when it is held; 0: it is not
    std::uint64_t free_until_ns = 0;
    bool in_turn = false, begun = false;
  };
  void see(const Places& places, std::uint32_t turns, std::uint64_t now_ns);
  std::uint32_t free_places(std::uint32_t held, std::uint64_t now_ns);

  std::array<Seen, gpuctl::ipc::kStreamPlaces> seen_;
};

}  // namespace gpuslice
