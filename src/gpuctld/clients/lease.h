// Whether a client gives signs of life. A program that is stopped (SIGSTOP, a debugger, a frozen cgroup) may have
// reported demand that it cannot use, and others wait for it. So its demand counts only while it beats: libgpuslice
// counts up Stub::beat. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace gpuctl::daemon {

class Lease {
 public:
  /// libgpuslice beats five times a second. After a pause of this length a client was held up.
  static constexpr std::chrono::milliseconds kHeldUp{600};
  /// A look that comes late says nothing of the time before: no look counts for more silence than this. The daemon
  /// looks at least every 250 ms.
  static constexpr std::chrono::milliseconds kMostSilencePerLook{300};

  /// The page says `beat`. True if the client beats again after it was held up.
  bool look(std::uint32_t beat, std::uint64_t now_ns) {
    if (!beats_ && beat == 0) return false;
    const std::uint64_t since_look = now_ns - looked_ns_;
    looked_ns_ = now_ns;
    if (beats_ && beat == last_) {
      silent_ns_ += std::min(since_look, in_ns(kMostSilencePerLook));
      return false;
    }
    const bool again = silent_ns_ >= in_ns(kHeldUp);
    beats_ = true;
    last_ = beat;
    beat_seen_ns_ = now_ns;
    silent_ns_ = 0;
    return again;
  }

  /// Whether it has given no sign of life for so long. A client that never beat is not expected to.
  bool expired(std::chrono::nanoseconds length) const {
    return beats_ && silent_ns_ >= static_cast<std::uint64_t>(length.count());
  }

  /// The latest instant at which it surely was alive.
  std::uint64_t alive_ns(std::uint64_t now_ns) const { return beats_ ? beat_seen_ns_ : now_ns; }

 private:
  static std::uint64_t in_ns(std::chrono::nanoseconds time) { return static_cast<std::uint64_t>(time.count()); }

  bool beats_ = false;
  std::uint32_t last_ = 0;
  std::uint64_t looked_ns_ = 0, beat_seen_ns_ = 0, silent_ns_ = 0;
};

}  // namespace gpuctl::daemon
