// The level of each stream of the program among its streams: greater goes first. Policies for jobs that take streams
// for jobs go by it. A stream has the level that the program asked for (gpuslice_stream_priority()), else the one of
// its CUDA priority, 0 where it has none.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "libgpuslice/base/stream_key.h"

namespace gpuslice {

/// Any thread. No lock is taken while its own is held.
class StreamLevels {
 public:
  static StreamLevels& get();

  /// Levels that a program may ask for, either sign.
  static constexpr int kMost = 1000;

  /// The program made a stream of this CUDA priority, of which lower ones go first.
  void made(CUstream stream, int cuda_priority);
  /// It gave one another CUDA priority.
  void changed(CUstream stream, int cuda_priority);
  /// `to` gets the level of `from`.
  void copied(CUstream to, CUstream from);
  void destroyed(CUstream stream);
  /// The context ends, and all its streams with it.
  void forget(CUcontext context);
  /// -kMost to kMost.
  void ask(CUstream stream, int level);

  struct Known {
    std::uint32_t number = 0;  ///< names the stream: from 1, in the order of first launches; not used again
    std::int16_t level = 0;
  };
  /// The first call for a stream numbers it.
  Known of(const StreamKey& stream);

  void forget_after_fork();

 private:
  struct Stream {
    std::uint32_t number = 0;  ///< 0: none yet
    int cuda_priority = 0;
    std::optional<int> asked;
    CUcontext context = nullptr;  ///< null: nobody has said anything of it
  };

  Stream& known(CUstream stream, CUcontext context);

  std::mutex mutex_;
  std::map<StreamKey, Stream> streams_;
  std::uint32_t numbers_ = 0;
};

}  // namespace gpuslice
