// Temporal policies: who has the device now, and until when. A policy is a pure object that is asked after each event
// (arrival, completion, last block-task claimed, end of a slice); time is an argument. The same objects run in the
// daemon, one per node and device, and in the simulator. One policy is one file in policy/ and one row in
// policy/table.cc.
#pragma once

#include <boost/system/result.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sched/temporal/job.h"

namespace gpuctl::sched {

struct Share {
  std::uint32_t job;  ///< index into View::jobs
  CapSM capsm;
};

/// What a policy wants from now on. Jobs without a share get nothing.
struct Plan {
  std::vector<Share> shares;  ///< in sum at most the capacity; the first one leads: slices are its
  Time slice = kNever;        ///< how long the leading job may go on, counted from when it holds SMs
  bool renew = false;         ///< start a new slice though the same job leads as before
  Time again = kNever;        ///< instant at which to ask again whatever happens

  void clear() { shares.clear(), slice = kNever, renew = false, again = kNever; }
  /// The whole device to one job.
  void run(std::uint32_t job, CapSM capacity, Time slice_length = kNever) {
    shares.push_back({job, capacity}), slice = slice_length;
  }
};

inline constexpr std::uint32_t kNoJob = 0xffffffff;

struct View {
  std::span<Job> jobs;            ///< never empty when a policy is asked; in no order
  std::uint32_t leader = kNoJob;  ///< the job that led so far, if it is still there and its slice is not over
  CapSM capacity{};
  Time now{};
};

class JobPolicy {
 public:
  virtual ~JobPolicy() = default;
  virtual void arrived(Job&, Time /*now*/) {}
  /// The job is complete, or was taken away.
  virtual void left(const Job&, Time /*now*/) {}
  /// The job's last block-task is claimed (Job::tail).
  virtual void all_claimed(Job&, Time /*now*/) {}
  /// The leading job has used up its slice, or is asked to make room for good; plan() follows.
  virtual void slice_over(Job&, Time /*now*/) {}
  virtual void plan(const View& view, Plan& plan) = 0;
  /// Whether of jobs of different priorities the greatest always goes first, however long the others wait. A GPU's own
  /// priorities do that too.
  virtual bool priority_decides() const { return false; }
};

/// A point of a kernel's curve: how long the whole kernel takes with so many SMs' worth of workers.
struct CurvePoint {
  CapSM capsm{};
  Time whole{};
};

/// Curve of a kernel, ascending in CapSM and strictly falling in time, of any unit of work; empty when unknown. Valid
/// until the next event.
using CurveSource = std::function<std::span<const CurvePoint>(std::uint32_t kernel)>;

/// Settings of a slice, for policies that know reserves.
struct SliceLimits {
  CapSM reserve{};
  bool strict = true;  ///< kept free while idle; else others may use it meanwhile
  CapSM max = kUnlimitedCapSM;
  std::uint32_t weight = 1;
};

/// What the makers of policies may use: what has been learnt, what slices are set to, and options as text.
struct PolicyInputs {
  CurveSource curves = {};
  std::vector<SliceLimits> slices = {};  ///< in sum no more reserved than the device has
  std::vector<std::pair<std::string, std::string>> options = {};
};

/// Whether "name:option=value" is a policy for jobs that a slice can have; what is wrong, if not.
Result<void> check_slice_policy(std::string_view text);

/// Makes a policy from "name" or "name:option=value:option=value"; an option without a value is set to 1.
Result<std::unique_ptr<JobPolicy>> make_job_policy(std::string_view text, PolicyInputs inputs = {});

}  // namespace gpuctl::sched
