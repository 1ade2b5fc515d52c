// Launches of kernels that have no persistent form: they cannot be evicted, so what a slice
// limits is when and where the next one starts.
//
// - A client that is granted nothing starts nothing: the launching thread waits.
// - One that is granted a part of the GPU launches on a stream of a green context that has about so many SMs (green.h),
//   between what is before and behind in the program's own stream: one event each way, some 0.5 us, which one launch
//   behind the other does without (joining.h). Which part, the daemon says (Grant::first), so that two such clients do
//   not get the same. A launch whose blocks wait for each other goes there only if they fit (together.h); the driver
//   would refuse it, though it fits the GPU that the program asked about.
// - A program may be no more than some milliseconds ahead of the GPU in each stream (run_ahead.h), or a new grant would
//   take effect long after it was made.
//
// While such launches are on the GPU the client has demand, as many SMs as the largest of them has blocks. Under a
// policy for jobs some of them are timed (launch_timer.h), and the daemon hears which one is the client's job: the one
// that waits for a grant, else the oldest of those timed that is not complete, else the latest.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "libgpuslice/client/grant_view.h"
#include "libgpuslice/driver/stream_key.h"
#include "libgpuslice/streams/green.h"
#include "libgpuslice/streams/lane.h"
#include "libgpuslice/streams/launch_timer.h"

namespace gpuslice {

struct KernelInfo;

class Opaque {
 public:
  /// Whose launches they are.
  class Owner {
   public:
    /// Nothing is managed there any more.
    virtual bool ended() const = 0;
    /// A launch of so many blocks is about to begin where none was on the GPU. `job`: what policies for jobs are told
    /// of it, if anything.
    virtual void opaque_started(std::uint64_t blocks, const OpaqueJob& job) = 0;
    /// A launch that a thread waits with, and who came later.
    struct Waiting {
      OpaqueJob job;
      Waiting* next = nullptr;
    };
    /// A thread waits for a grant; until past_gate(), with the same, its launch is what is to be granted something.
    virtual void at_gate(Waiting& one) = 0;
    virtual void past_gate(Waiting& one) = 0;

   protected:
    ~Owner() = default;
  };

  /// Both outlive it.
  Opaque(const GrantView& view, Owner& owner) : view_(view), owner_(owner) {}

  /// What is to be launched.
  struct Launch {
    std::uint64_t blocks;
    bool confine = true;                    ///< if need be to some SMs; a graph cannot be
    std::uint32_t least = 0;                ///< SMs without which it cannot run
    const char* name = "a graph";           ///< of the kernel, which outlives the launch
    KernelInfo* kernel = nullptr;           ///< by what durations are known; null: it is not to be known by any
    std::uint32_t threads = 0, shared = 0;  ///< of a block

    OpaqueJob job(std::uint64_t now_ns) const;
  };

  /// One launch, from before it to behind it; other threads' launches into the same stream wait meanwhile. The context
  /// must be current.
  class Turn {
   public:
    Turn(Opaque& opaque, CUstream stream, const Launch& launch);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    /// Where to launch: the program's stream, or a confined one.
    CUstream stream() const { return confined_.stream ? confined_.stream : stream_; }
    bool confined() const { return confined_.stream != nullptr; }
    /// The program's stream, behind all that went elsewhere: the driver refused to launch there.
    CUstream anywhere(const char* why);
    /// The driver refused it altogether.
    void give_up() { lane_->timer.give_up(); }
    /// On how many SMs; 0: on any, and why.
    std::uint32_t sms() const { return confined_.sms; }
    const char* why_anywhere() const { return confined_.none; }

   private:
    void confine(Opaque& opaque, const Launch& launch);

    CUstream stream_;
    GreenContexts::Confined confined_;
    Lane* lane_;
    std::unique_lock<std::mutex> lock_;
  };

  /// What a look at all streams shows, for policies for jobs.
  struct Look {
    bool any = false;                ///< a stream with launches could be looked at
    OpaqueJob oldest;                ///< in these streams, as far as known
    std::vector<TimedLaunch> timed;  ///< complete since the look before
  };
  /// SMs that launches on the GPU now could fill; 0 when all are complete. Asks the driver. `look`: the agent's.
  std::uint32_t demand(Look* look = nullptr);
  /// Says in the debug file what does not end.
  void report_slow();
  /// The program is about to destroy the stream.
  void stream_destroyed(CUstream stream);
  /// The program has released the primary context for the last time.
  void give_up_parts() { green_.give_up(); }

 private:
  friend class Turn;
  Lane& lane_of(CUstream stream);
  static void consider(const Lane& lane, Look& look);
  void wait_for_grant(Lane& lane, const Launch& launch) const;

  const GrantView& view_;
  Owner& owner_;
  std::mutex mutex_;  ///< guards lanes_; after a lane's own
  std::map<StreamKey, std::shared_ptr<Lane>> lanes_;
  GreenContexts green_;
};

}  // namespace gpuslice
