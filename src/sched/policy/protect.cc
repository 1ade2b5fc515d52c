#include "sched/policy/protect.h"

#include <algorithm>
#include <optional>

namespace gpuctl::sched {

namespace {
class Protected : public JobPolicy {
 public:
  Protected(std::unique_ptr<JobPolicy> policy, Time protect) : policy_(std::move(policy)), protect_(protect) {}

  void arrived(Job& job, Time now) override { policy_->arrived(job, now); }
  void left(const Job& job, Time now) override {
    if (boosted_ == job.id) boosted_.reset();
    policy_->left(job, now);
  }
  void slice_over(Job& job, Time now) override {
    if (boosted_ == job.id)
      boosted_.reset();
    else
      policy_->slice_over(job, now);
  }
  void plan(const View& view, Plan& plan) override {
    if (boosted_ && view.leader != kNoJob && view.jobs[view.leader].id == *boosted_) {
      plan.run(view.leader, view.capacity, kProtectedSlice);
      return;
    }
    boosted_.reset();
    std::uint32_t longest = kNoJob;
    for (std::uint32_t i = 0; i < view.jobs.size(); ++i) {
      const Job& job = view.jobs[i];
      if (job.holds() || job.tail) continue;
      if (longest == kNoJob || waits_longer(job, view.jobs[longest])) longest = i;
    }
    if (longest != kNoJob && view.now - view.jobs[longest].since >= protect_) {
      boosted_ = view.jobs[longest].id;
      plan.run(longest, view.capacity, kProtectedSlice);
      plan.renew = true;
      return;
    }
    policy_->plan(view, plan);
    if (longest != kNoJob) plan.again = std::min(plan.again, view.jobs[longest].since + protect_);
  }

 private:
  static bool waits_longer(const Job& a, const Job& b) {
    return a.since != b.since ? a.since < b.since : a.sequence < b.sequence;
  }

  std::unique_ptr<JobPolicy> policy_;
  Time protect_;
  std::optional<JobId> boosted_;
};
}  // namespace

std::unique_ptr<JobPolicy> protect_from_starving(std::unique_ptr<JobPolicy> policy, Time protect) {
  if (protect == Time{0}) return policy;
  return std::make_unique<Protected>(std::move(policy), protect);
}

}  // namespace gpuctl::sched
