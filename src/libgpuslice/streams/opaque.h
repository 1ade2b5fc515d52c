// Launches of kernels that have no persistent form. They cannot be evicted, so a slice can limit only when and where
// the next launch starts.
//
// - A client that is granted nothing, and has no SMs in common with others, starts nothing: the launching thread waits.
// - A client that is granted a part of the GPU launches in a stream of a green context with about that many SMs
//   (green.h). An event each way, about 0.5 us, keeps the launch in order with the program's own stream. Consecutive
//   launches do without these events (joining.h). The daemon says which part (Grant::first), so that two such clients
//   do not get the same part. What clients have in common is made of pairs of SMs (base/pair_choice.h) until a launch
//   of one of them does not run there. A launch whose blocks wait for each other goes there only if they fit
//   (co_residency.h): the driver would refuse it although it fits the GPU that the program asked about.
// - A program may be only some milliseconds ahead of the GPU in each stream (in_flight_limit.h). Otherwise a new grant
//   would take effect long after it was made.
//
// While such launches are on the GPU, the client has demand: as many SMs as the largest of them has blocks. Under a
// policy for jobs some launches are timed (launch_timer.h), and the daemon is told which launch is the client's job:
// the one that waits for a grant, else the oldest timed one that is not complete, else the latest.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "libgpuslice/base/pair_choice.h"
#include "libgpuslice/base/stream_key.h"
#include "libgpuslice/client/grant_view.h"
#include "libgpuslice/streams/green.h"
#include "libgpuslice/streams/joining.h"
#include "libgpuslice/streams/lane.h"
#include "libgpuslice/streams/launch_timer.h"
#include "libgpuslice/streams/quiesce.h"
#include "libgpuslice/streams/settling.h"

namespace gpuslice {

struct KernelInfo;

class Opaque {
 public:
  /// The context that these launches belong to.
  class Owner {
   public:
    /// Whether nothing is managed there any more.
    virtual bool ended() const = 0;
    /// A launch of `blocks` blocks is about to begin, and none was on the GPU. `job`: what policies for jobs are told
    /// of it, if anything.
    virtual void opaque_started(std::uint64_t blocks, const OpaqueJob& job) = 0;
    /// A launch whose thread waits, and the next one that came later.
    struct Waiting {
      OpaqueJob job;
      Waiting* next = nullptr;
    };
    /// A thread waits for a grant. Until past_gate() with the same object, its launch is what a grant would be for.
    virtual void at_gate(Waiting& one) = 0;
    virtual void past_gate(Waiting& one) = 0;

   protected:
    ~Owner() = default;
  };

  /// `view` and `owner` outlive this object.
  Opaque(const GrantView& view, Owner& owner) : view_(view), owner_(owner) {}

  /// A launch to be made.
  struct Launch {
    std::uint64_t blocks;
    bool confine = true;                    ///< may be confined to some SMs; of a graph, a copy is (graph_copy.h)
    std::uint32_t least = 0;                ///< fewest SMs on which it can run
    std::uint64_t cluster = 1;              ///< blocks of its clusters
    const char* name = "a graph";           ///< name of the kernel, which outlives the launch
    KernelInfo* kernel = nullptr;           ///< its durations are noted here; null: they are not noted
    std::uint32_t threads = 0, shared = 0;  ///< per block
    std::uint64_t input_bytes = 0;          ///< memory into which its parameters point, as far as known
    GrantView::Version decided;             ///< the grant before anything was decided about the launch

    OpaqueJob job(std::uint64_t now_ns) const;
  };

  /// One launch, from before to after the driver's call. Meanwhile other threads' launches into the same stream wait.
  /// The context must be current.
  class Turn {
   public:
    Turn(Opaque& opaque, CUstream stream, const Launch& launch);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    /// The stream to launch into: the program's, or a confined one.
    CUstream stream() const { return confined_.stream ? confined_.stream : stream_; }
    bool confined() const { return confined_.stream != nullptr; }
    bool in_pairs() const { return confined_.pairs; }
    /// Called when the driver refused to launch in a part of pairs. Moves the launch to the part made of groups; false
    /// if there is none, and the launch is not confined any more.
    bool move_to_groups(Opaque& opaque, const Launch& launch);
    /// Called when the driver refused to launch in the confined stream. Returns the program's stream, which now comes
    /// after all confined launches.
    CUstream anywhere(const char* why);
    /// Called when the driver refused the launch altogether.
    void give_up() { lane_->timer.give_up(); }
    /// sms(): how many SMs the launch is confined to; 0: it is not confined, and why_anywhere() says why.
    std::uint32_t sms() const { return confined_.sms; }
    Lane& lane() const { return *lane_; }
    const char* why_anywhere() const { return confined_.none; }
    /// As Lane::suspect, of this launch.
    std::uint64_t suspect() const { return suspect_; }

   private:
    void confine(Opaque& opaque, const Launch& launch, Place place);
    void leave_at_once();
    void goes_anywhere();
    void note_suspect(const Launch& launch, std::uint32_t sms_of_device);

    CUstream stream_;
    std::optional<CallInFlight> in_flight_;  ///< unless it is confined
    GreenContexts::Confined confined_;
    std::uint64_t suspect_ = 0;
    Lane* lane_;
    std::unique_lock<std::mutex> lock_;
  };

  /// Whether a launch into this stream can be confined to what is granted now, which is a part of the GPU. Waits for a
  /// grant, and makes that part if need be, as a turn does (settling.h). The context must be current.
  bool confines(CUstream stream, const Launch& launch);
  /// The part of the GPU in which graphs are to run now. None: they may run anywhere, or what is granted may change at
  /// any time, so that it is not worth copying them. Waits for a grant. `launch`: such a graph.
  std::optional<GrantView::Part> part_of_graphs(CUstream stream, const Launch& launch);
  /// Calls `use` with a stream of that part, if it has at least `least` SMs, or with the reason why there is none,
  /// while nothing of this context is on the GPU as far as known, and none of its launches begins. False: it was not
  /// called, as something may wait for the program (settling.h). The context must be current.
  bool use_part(CUstream stream, const GrantView::Part& part, std::uint32_t least,
                const std::function<void(const GreenContexts::Confined&, const GreenContexts::Hold&)>& use);
  /// Whether something waits for an idle device (settling.h).
  bool settles() const { return settling_.under_way(); }
  /// Whether launches may go to parts of pairs now.
  bool by_pairs() { return pair_choice_.pairs_for(view_.part().common, 1); }
  /// The driver refused a launch in a part of pairs, and made it elsewhere.
  void refused_in_pairs() { pair_choice_.refused(); }

  /// What a look at all streams shows policies for jobs.
  struct Look {
    std::uint32_t running = 0;       ///< SMs that could be filled by those that do not wait for a grant
    bool any = false;                ///< there is a stream with launches that could be looked at
    OpaqueJob oldest;                ///< the oldest job in these streams, as far as known
    std::vector<TimedLaunch> timed;  ///< timed launches that completed since the last look
  };
  /// How many SMs the launches that are on the GPU now could fill; 0 if all are complete. Asks the driver. `look`: only
  /// for the agent.
  std::uint32_t demand(Look* look = nullptr);
  /// Whether a launch would wait for a grant now. Needs no lock.
  bool must_wait() const;
  /// Whether all of them are complete. False too where that cannot be seen at once. The context must be current.
  bool idle();
  /// Writes launches that do not end to the debug file.
  void report_slow();
  /// A kernel of which a launch may be stuck where it was confined.
  struct Stuck {
    std::uint64_t kernel;  ///< hash_of()
    std::uint32_t sms;
    std::uint64_t ms;  ///< since the latest launch in its stream
  };
  /// Those whose streams do not end although nothing was launched there for some seconds.
  std::vector<Stuck> stuck();
  /// The program is about to destroy the stream.
  void stream_destroyed(CUstream stream);
  /// The program has released the primary context for the last time.
  void give_up_parts() { green_.give_up(); }

 private:
  friend class Turn;

  /// While one lives and is true, nothing of this context is on the GPU as far as we know, and no launch of ours begins
  /// (settling.h). The caller holds the mutex of `own`.
  class Settled {
   public:
    Settled(Opaque& opaque, const Lane& own);
    ~Settled();
    Settled(const Settled&) = delete;
    Settled& operator=(const Settled&) = delete;
    explicit operator bool() const { return settled_; }

   private:
    Opaque& opaque_;
    bool begun_ = false;
    bool settled_ = false;
    std::optional<QuiesceLaunches> quiesced_;
  };

  Lane& lane_of(CUstream stream);
  Place place_now(const Launch& launch);
  void find_or_make(Lane& lane, Place& place, std::uint32_t least);
  Settling::Seen look_before(const Lane& own);
  void consider(const Lane& lane, Look& look) const;
  bool reports_jobs() const;
  void start_when_granted(Lane& lane, const Launch& launch);
  void wait_for_grant(Lane& lane, const Launch& launch) const;

  const GrantView& view_;
  Owner& owner_;
  std::mutex mutex_;  ///< guards lanes_; taken after a lane's mutex, so demand() only tries to take that one
  std::map<StreamKey, std::shared_ptr<Lane>> lanes_;
  GreenContexts green_;
  PairChoice pair_choice_;
  Settling settling_;
};

}  // namespace gpuslice
