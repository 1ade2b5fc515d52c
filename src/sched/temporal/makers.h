// The makers of the temporal policies, for policy/table.cc alone, and what the policies share.
#pragma once

#include "sched/temporal/job_policy.h"

namespace gpuctl::sched {

using MadePolicy = Result<std::unique_ptr<JobPolicy>>;

MadePolicy make_fcfs(const PolicyInputs& inputs);
MadePolicy make_hpf(const PolicyInputs& inputs);
MadePolicy make_ffs(const PolicyInputs& inputs);
MadePolicy make_piv(const PolicyInputs& inputs);
MadePolicy make_dprr(const PolicyInputs& inputs);
MadePolicy make_sjf(const PolicyInputs& inputs);
MadePolicy make_srt(const PolicyInputs& inputs);
MadePolicy make_rr(const PolicyInputs& inputs);
MadePolicy make_cfs(const PolicyInputs& inputs);
MadePolicy make_frs(const PolicyInputs& inputs);
MadePolicy make_sim(const PolicyInputs& inputs);
MadePolicy make_share(const PolicyInputs& inputs);

/// Reads the options of one policy. The policy asks for each option once; an option that it did not ask for is an
/// error.
class OptionReader {
 public:
  explicit OptionReader(const PolicyInputs& inputs) : inputs_(inputs), used_(inputs.options.size()) {}
  double number(std::string_view name, double fallback, double least, double most);
  double whole(std::string_view name, double fallback, double least, double most);
  Time milliseconds(std::string_view name, double fallback, double least, double most);
  bool flag(std::string_view name) { return whole(name, 0, 0, 1) != 0; }
  void complain(std::string error);
  /// The first error, or nothing.
  Result<void> finish();

 private:
  const PolicyInputs& inputs_;
  std::vector<bool> used_;
  std::string error_;
};

/// The policy, or the error of a wrong option.
template <class P, class... Args>
MadePolicy finish_policy(OptionReader& options, Args&&... args) {
  if (const auto read = options.finish(); !read) return read.error();
  return std::unique_ptr<JobPolicy>(std::make_unique<P>(std::forward<Args>(args)...));
}

/// Index of the first job in the order of `before`, under which no two jobs are equal.
template <class Before>
std::uint32_t first_job(std::span<const Job> jobs, Before before) {
  std::uint32_t best = 0;
  for (std::uint32_t i = 1; i < jobs.size(); ++i)
    if (before(jobs[i], jobs[best])) best = i;
  return best;
}

/// Index of the job with the least value of `key`, the earlier arrival among equals.
template <class Key>
std::uint32_t least_job(std::span<const Job> jobs, Key key) {
  std::uint32_t best = 0;
  auto least = key(jobs[0]);
  for (std::uint32_t i = 1; i < jobs.size(); ++i) {
    const auto k = key(jobs[i]);
    if (k < least || (k == least && jobs[i].sequence < jobs[best].sequence)) best = i, least = k;
  }
  return best;
}

}  // namespace gpuctl::sched
