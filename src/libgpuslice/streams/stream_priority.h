// The priority of the program's streams on the GPU: the slice's first, the program's own within it.
//
// The GPU has a few levels of priority. Among programs that run at the same time, a block of a greater level is placed
// first whenever another block ends. The daemon gives each client a band of these levels (ipc::PriorityBand), the agent
// has the greatest level for itself. Each stream has the level in its client's band that its own priority asks for.
// When the band changes, a stream takes it up at its next launch. The program sees its own values alone.
#pragma once

#include <cuda.h>

#include <atomic>
#include <map>
#include <mutex>
#include <optional>

#include "libgpuslice/driver/stream_key.h"
#include "libgpuslice/streams/priority_band.h"

namespace gpuslice {

/// The program's streams. Any thread.
class StreamPriorities {
 public:
  static StreamPriorities& get();

  /// What to tell the driver where the program says `own`, for a stream or a launch in the current context.
  int for_new(int own) const;
  /// A stream was made, or changed, with for_new(own).
  void made(CUstream stream, int own);
  /// `to` is to be like `from`.
  void copied(CUstream to, CUstream from);
  void destroyed(CUstream stream);

  /// What the program believes about a stream; nothing: what the driver says is the program's own.
  std::optional<int> own(CUstream stream);

  /// Before a launch: has the stream follow the band. What the launch must say itself, because the driver does not take
  /// it for this stream; nothing else to do otherwise. Not while the stream is captured.
  std::optional<int> before_launch(CUstream stream);

  void forget_after_fork();

 private:
  struct Stream {
    int own = 0;
    gpuctl::ipc::PriorityBand band;  ///< that it has
    bool by_launch = false;          ///< the driver refuses to change it
    int level = 0;                   ///< with by_launch
  };

  std::mutex mutex_;
  std::map<StreamKey, Stream> streams_;
  std::atomic<bool> used_{false};  ///< a band other than all levels was seen
};

}  // namespace gpuslice
