// Launches of kernels that have no persistent form (DESIGN section 5, "opaque"): they cannot be evicted, so what a slice
// limits is when and where the next one starts.
//
// - A client that is granted nothing starts nothing: the launching thread waits.
// - One that is granted a part of the GPU launches on a stream of a green context that has about so many SMs (green.h),
//   between what is before and behind in the program's own stream: one event each way, some 0.5 us. Which part, the daemon
//   says (Grant::first), so that two such clients do not get the same.
// - A program may be no more than a few dozen launches ahead of the GPU in each stream, or a new grant would take effect long
//   after it was made.
//
// While such launches are on the GPU the client has demand, as many SMs as the largest of them has blocks.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "libgpuslice/green.h"

namespace gpuslice {

class Context;
struct Lane;

class Opaque {
 public:
  explicit Opaque(Context& context) : context_(context) {}

  /// One launch, from before it to behind it; other threads' launches into the same stream wait meanwhile. The context
  /// must be current.
  class Turn {
   public:
    /// `confine`: if need be to some SMs; a graph cannot be.
    Turn(Opaque& opaque, CUstream stream, std::uint64_t blocks, bool confine = true);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    /// Where to launch: the program's stream, or a confined one.
    CUstream stream() const { return confined_ ? confined_ : stream_; }
    bool confined() const { return confined_ != nullptr; }

   private:
    CUstream stream_;
    CUstream confined_ = nullptr;
    Lane* lane_;
    std::unique_lock<std::mutex> lock_;
  };

  /// SMs that launches on the GPU now could fill; 0 when all are complete. Asks the driver. The agent's.
  std::uint32_t demand();
  /// The program is about to destroy the stream.
  void stream_destroyed(CUstream stream);

 private:
  friend class Turn;
  using Key = std::pair<CUstream, unsigned long>;

  Lane& lane_of(CUstream stream);
  void wait_for_grant() const;

  Context& context_;
  std::mutex mutex_;  ///< guards lanes_; after a lane's own
  std::map<Key, std::shared_ptr<Lane>> lanes_;
  GreenContexts green_;
};

}  // namespace gpuslice
