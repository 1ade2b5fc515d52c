// The priority of the program's streams on the GPU: first by slice, then by the program's own priority.
//
// The GPU has a few levels of priority. Among programs that run at the same time, whenever a block ends, a block of a
// greater level is placed first. The daemon gives each client a band of these levels (ipc::PriorityBand). The agent has
// the greatest level for itself. Within its client's band, each stream has the level that its own priority asks for.
// When the band changes, a stream takes the new level at its next launch. The program sees only its own values.
#pragma once

#include <cuda.h>

#include <atomic>
#include <map>
#include <mutex>
#include <optional>

#include "libgpuslice/base/launch_words.h"
#include "libgpuslice/base/stream_key.h"
#include "libgpuslice/streams/priority_band.h"

namespace gpuslice {

/// A level on the GPU, and the band that it was chosen in.
struct BandedLevel {
  int level = 0;
  gpuctl::ipc::PriorityBand band;
};

/// The program's streams. Any thread.
class StreamPriorities {
 public:
  static StreamPriorities& get();

  /// The priority to give the driver when the program asks for `own`, for a stream or a launch in the current context.
  int for_new(int own) const;
  /// The program made a stream, or changed its priority, with for_new(own).
  void made(CUstream stream, int own);
  /// That level, which kernels have that the program captured or prepared in the current context, in the current band.
  BandedLevel banded_now(int level) const;
  /// `to` gets the priority of `from`.
  void copied(CUstream to, CUstream from);
  void destroyed(CUstream stream);
  /// The context ends, and all its streams with it.
  void forget(CUcontext context);

  /// The priority that the program gave a stream. Nothing: it is what the driver reports.
  std::optional<int> own(CUstream stream);

  /// Called before a launch; not while the stream is captured. Makes the stream follow the band. Returns the priority
  /// that the launch itself must carry, if the driver does not accept it for the stream.
  std::optional<int> before_launch(CUstream stream);
  /// Whether before_launch() would change nothing and return nothing, as far as this thread knows without a lock.
  /// `flags`: Grant::flags.
  static bool follows(CUstream stream, std::uint32_t flags) {
    const std::uint32_t band = flags & gpuctl::ipc::kBandMask;
    if (band <= gpuctl::ipc::pack_band({}) && !g_launch_words.bands_used.load(std::memory_order_relaxed)) return true;
    return t_followed.stream == stream && t_followed.band == band &&
           t_followed.generation == g_launch_words.streams.load(std::memory_order_acquire);
  }

  /// While it lives, the stream has the priority that `level` stands for, in the band of now. Where the stream itself
  /// would have had that level, its own priority holds. before_launch() comes first; not while the stream is captured.
  class Lent {
   public:
    Lent(CUstream stream, const BandedLevel& level);
    ~Lent();
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;

   private:
    const CUstream stream_;
    std::optional<int> before_;  ///< the stream's level; none: it was not changed
  };

  void forget_after_fork();

 private:
  struct Stream {
    int own = 0;
    gpuctl::ipc::PriorityBand band;  ///< its current band
    bool by_launch = false;          ///< the driver refuses to change the stream's priority, so launches carry it
    int level = 0;                   ///< used with by_launch
    CUcontext context = nullptr;
  };

  /// A stream that follows a band, and the value of LaunchWords::streams at that time.
  struct Followed {
    CUstream stream;
    std::uint32_t band, generation;
  };
  /// The latest of this thread.
  static __attribute__((tls_model("initial-exec"))) thread_local constinit Followed t_followed;

  std::mutex mutex_;
  std::map<StreamKey, Stream> streams_;
};

}  // namespace gpuslice
