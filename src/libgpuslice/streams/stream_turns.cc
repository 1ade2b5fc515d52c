#include "libgpuslice/streams/stream_turns.h"

namespace gpuslice {

using gpuctl::ipc::kStreamPlaces;

void StreamTurns::see(const Places& places, std::uint32_t turns, std::uint64_t now_ns) {
  for (std::uint32_t i = 0; i < kStreamPlaces; ++i) {
    Seen& seen = seen_[i];
    const bool in_turn = (turns >> i & 1) != 0;
    if (seen.progress != places[i].progress || seen.begun != places[i].begun || seen.in_turn != in_turn)
      seen.advanced_ns = now_ns;
    seen.progress = places[i].progress;
    seen.begun = places[i].begun;
    seen.in_turn = in_turn;
  }
}

/// Those of `held` that were held for too long in one go.
std::uint32_t StreamTurns::free_places(std::uint32_t held, std::uint64_t now_ns) {
  std::uint32_t free = 0;
  for (std::uint32_t i = 0; i < kStreamPlaces; ++i) {
    Seen& seen = seen_[i];
    if (now_ns < seen.free_until_ns) {
      free |= 1u << i;
    } else if ((held >> i & 1) == 0) {
      seen.held_ns = 0;
    } else if (seen.held_ns == 0) {
      seen.held_ns = now_ns;
    } else if (now_ns - seen.held_ns >= kLongestHoldNs) {
      seen.held_ns = 0;
      seen.free_until_ns = now_ns + kFreeNs;
      free |= 1u << i;
    }
  }
  return free;
}

StreamTurns::Held StreamTurns::look(const Places& places, std::uint32_t turns, std::uint64_t now_ns) {
  see(places, turns, now_ns);
  bool runs = false, gets_on = false;
  std::uint32_t busy = 0;
  for (std::uint32_t i = 0; i < kStreamPlaces; ++i) {
    if (!places[i].busy) continue;
    busy |= 1u << i;
    if (!seen_[i].in_turn) continue;
    const std::uint64_t still_ns = now_ns - seen_[i].advanced_ns;
    runs |= places[i].begun && still_ns < kRunsNs;
    gets_on |= still_ns < (places[i].begun ? kRunsNs : kBeginsNs);
  }
  const std::uint32_t others = busy & ~turns, held = gets_on ? others : 0;
  const std::uint32_t free = free_places(held, now_ns);
  return {.evicted = runs ? others & ~free : 0, .gated = held & ~free};
}

}  // namespace gpuslice
