// Temporal policies decide which job has the device now, and until when. A policy is a pure object that is asked after
// each event (arrival, completion, last block-task claimed, end of a slice); time is an argument. The daemon has one
// such object per node and device; the simulator uses the same classes. A policy is one file in policy/ and one row in
// policy/table.cc.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sched/residency/sm_limits.h"
#include "sched/temporal/job.h"

namespace gpuctl::sched {

struct Share {
  std::uint32_t job;  ///< index into View::jobs
  CapSM capsm;
};

/// What a policy wants from now on. Jobs without a share get nothing.
struct Plan {
  /// Together at most the capacity, or what fits on an SM (PolicyInputs::sm). The first job leads and has the slice.
  std::vector<Share> shares;
  Time slice = kNever;  ///< how long the leading job may run, counted from when it holds SMs
  bool renew = false;   ///< start a new slice even if the same job leads as before
  Time again = kNever;  ///< instant at which to ask again in any case

  void clear() { shares.clear(), slice = kNever, renew = false, again = kNever; }
  /// The whole device to one job.
  void run(std::uint32_t job, CapSM capacity, Time slice_length = kNever) {
    shares.push_back({job, capacity}), slice = slice_length;
  }
};

inline constexpr std::uint32_t kNoJob = 0xffffffff;

struct View {
  std::span<Job> jobs;            ///< never empty when a policy is asked; in no particular order
  std::uint32_t leader = kNoJob;  ///< the job that led so far, if it still exists and its slice is not over
  CapSM capacity{};
  Time now{};
};

class JobPolicy {
 public:
  virtual ~JobPolicy() = default;
  virtual void arrived(Job&, Time /*now*/) {}
  /// The job is complete, or was removed.
  virtual void left(const Job&, Time /*now*/) {}
  /// The job's last block-task is claimed (Job::tail).
  virtual void all_claimed(Job&, Time /*now*/) {}
  /// The leading job has used up its slice, or is asked to make room for good; plan() follows.
  virtual void slice_over(Job&, Time /*now*/) {}
  virtual void plan(const View& view, Plan& plan) = 0;
  /// Whether the job with the greatest priority always goes first, however long the others wait. The GPU's own
  /// priorities do that too.
  virtual bool priority_decides() const { return false; }
};

/// A point of a kernel's curve: how long the whole kernel takes with so many SMs' worth of workers, or so many workers
/// on each SM (PolicyInputs::sm).
struct CurvePoint {
  CapSM capsm{};
  Time whole{};
};

/// The curve of a kernel, ascending in CapSM and strictly falling in time, in any unit of work; empty if unknown. Valid
/// until the next event.
using CurveSource = std::function<std::span<const CurvePoint>(std::uint32_t kernel)>;

/// What a block of a job takes of an SM.
using BlockSource = std::function<BlockShape(const Job& job)>;

/// Settings of a slice, for policies that know reserves.
struct SliceLimits {
  CapSM reserve{};
  bool strict = true;  ///< the reserve is always kept free; otherwise while a job of the slice is there
  CapSM max = kUnlimitedCapSM;
  std::uint32_t weight = 1;
};

/// What a policy may be made from: what was learnt, the settings of the slices, and options as text.
struct PolicyInputs {
  CurveSource curves = {};
  std::vector<SliceLimits> slices = {};  ///< their reserves add up to at most the device
  /// What is kept for a slice beyond its reserve, at each decision; empty: nothing. With the reserves it adds up to at
  /// most the device.
  std::function<CapSM(std::uint32_t slice)> kept = {};
  /// If set, jobs share each SM: an amount that a policy gives a job, its need and its curve count the workers that it
  /// has on every SM, and the capacity is how many blocks an SM holds at most. Then `blocks` is set too.
  std::optional<SmLimits> sm = {};
  BlockSource blocks = {};
  std::vector<std::pair<std::string, std::string>> options = {};
};

/// Whether "name:option=value" is a policy for jobs that a slice can have; if not, what is wrong.
Result<void> check_slice_policy(std::string_view text);

/// Makes a policy from "name" or "name:option=value:option=value"; an option without a value is set to 1.
Result<std::unique_ptr<JobPolicy>> make_job_policy(std::string_view text, PolicyInputs inputs = {});

}  // namespace gpuctl::sched
