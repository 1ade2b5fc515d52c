// Green contexts: parts of a GPU's SMs in which streams can be made (CUDA 12.4 and later).
//
// Measured on an H200: SMs come in groups of eight, and the last group takes the SMs that are left over. Kernels of the
// primary context run in green contexts unchanged, under MPS too. Making one takes 1 ms and 6 MB, and blocks until the
// device is idle. A GPU with fewer than 64 SMs is divided into eight groups, or as many as the driver makes of it.
// The driver also divides into pairs (pair_order.h); a part has groups, or pairs, not both.
//
// There are kMostParts at most. For another one the one used longest ago is given back, which nobody holds and in which
// nothing runs. What the driver refuses is tried again later (refusal.h).
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "libgpuslice/base/refusal.h"
#include "libgpuslice/base/sm_groups.h"
#include "libgpuslice/client/grant_view.h"

namespace gpuslice {

class GreenContexts {
 public:
  /// A part of the GPU. `stream` is null if there is none; then `none` says why.
  struct Confined {
    CUstream stream = nullptr;
    std::uint32_t sms = 0;
    const char* none = nullptr;
    bool unmade = false;  ///< there may be one: make() makes it
    bool pairs = false;   ///< the part is made of pairs
  };
  /// What is to be had: a stream confined to about these SMs, with the priority of `like`. No stream if the part has
  /// fewer than `least` SMs. The same `lane` gets the same stream each time. A part that is to be made of pairs is made
  /// of groups where it is not known how pairs lie, or the driver makes no such parts.
  struct Wanted {
    GrantView::Part part;
    std::uint32_t least;
    CUstream like;
    const void* lane;
  };
  /// While one lives, the part is not given back.
  using Hold = std::shared_ptr<const void>;
  /// Such a stream if it was made before, held by `hold`. Waits briefly at most, while another thread makes one. The
  /// context must be current, also for make(). Any thread.
  Confined find(const Wanted& wanted, Hold& hold);
  /// Makes it. The driver blocks until the device is idle.
  Confined make(const Wanted& wanted, Hold& hold);
  /// Destroys the streams of this lane, which will not ask for them again.
  void forget(const void* lane);
  /// Waits for everything that runs in the parts, and destroys them, since they hold the primary context. Later calls
  /// make them anew.
  void give_up();

 private:
  static constexpr std::size_t kMostParts = 32;  // each takes a few megabytes

  struct Part {
    CUgreenCtx context = nullptr;
    std::map<std::pair<const void*, int>, CUstream> streams;
    std::uint64_t used = 0;  ///< uses_ when it was last found or made
    Hold hold;               ///< nobody else has it: nobody holds the part
  };

  /// The device divided in one way, and the parts made of that.
  struct Division {
    bool divided = false;
    std::vector<CUdevResource> groups;  ///< the last one may have another size; none: the driver refuses this way
    std::vector<std::uint32_t> starts;  ///< SMs before each group; one more entry than groups
    std::map<GroupRun, Part> parts;
    Refusal refusal;  ///< of the division, or of a part
    const char* why = nullptr;
  };
  /// Groups of a division.
  struct Choice {
    Division* division = nullptr;
    GroupRun groups;
  };

  void divide(Division& division, bool pairs);
  Division& division(bool pairs);
  Confined choose(const Wanted& wanted, Choice& choice);
  const char* make(const Choice& choice, const Wanted& wanted);
  bool make_part(const Choice& choice, Part& part);
  bool give_one_back();
  static void destroy(Part& part);

  std::timed_mutex mutex_;  ///< guards what follows
  Division groups_, pairs_;
  std::uint64_t uses_ = 0;
};

}  // namespace gpuslice
