// hpf: highest priority first, and within a priority the shortest remaining time. A running job is evicted only if its
// remaining time is more than the waiting job's plus the cost of the eviction (FLEP 5.2.1, Figure 6).
//
// Good at: a job of high priority starts at once. Within a priority the mean slowdown is at most twice the best
// possible.
// Bad at: low priorities starve as long as there are jobs of higher ones (protect_ms bounds that).
//
// With spatial=1 a waiting job takes only the SMs it can fill and the others run on (FLEP 4.1). Less is evicted, but
// the small job shares caches and bandwidth with its neighbours.
//
// With spatial=1:extra=N it takes up to N SMs more than it fills, so that its blocks have less company on each SM (FLEP
// 6.4, Figure 16). Only jobs of lower priority give SMs for that: an equal one that can fill its SMs keeps them.
#include <algorithm>

#include "sched/policy/protect.h"

namespace gpuctl::sched {

namespace {
/// A job's remaining time as it is compared: for a running job, less the cost of evicting it.
Time bid(const Job& job) {
  return job.state == JobState::running ? job.remaining - job.eviction : job.remaining;
}

bool before(const Job& a, const Job& b) {
  if (a.priority != b.priority) return a.priority > b.priority;
  const Time bid_a = bid(a), bid_b = bid(b);
  if (bid_a != bid_b) return bid_a < bid_b;
  if (a.holds() != b.holds()) return a.holds();
  return a.sequence < b.sequence;
}

class Hpf : public JobPolicy {
 public:
  void plan(const View& view, Plan& plan) override { plan.run(first_job(view.jobs, before), view.capacity); }
  bool priority_decides() const override { return true; }
};

class SpatialHpf : public JobPolicy {
 public:
  explicit SpatialHpf(CapSM extra) : extra_(extra) {}

  void plan(const View& view, Plan& plan) override {
    choose(view);
    CapSM left = view.capacity;
    for (const std::uint32_t i : chosen_) {
      const CapSM part = std::min(left, view.jobs[i].need);
      plan.shares.push_back({i, part});
      left -= part;
    }
    if (extra_.count > 0) give_extra(view, left, plan);
  }
  /// The GPU's own priorities leave no SM to the waiting job alone.
  bool priority_decides() const override { return extra_.count == 0; }

 private:
  /// The first jobs in the order, as many as the device holds. One pass keeps them in a short sorted list.
  void choose(const View& view) {
    chosen_.clear();
    std::uint32_t needs = 0;
    for (std::uint32_t i = 0; i < view.jobs.size(); ++i) {
      const Job& job = view.jobs[i];
      if (needs >= view.capacity.count && !before(job, view.jobs[chosen_.back()])) continue;
      const auto at = std::upper_bound(chosen_.begin(), chosen_.end(), i, [&](std::uint32_t a, std::uint32_t b) {
        return before(view.jobs[a], view.jobs[b]);
      });
      chosen_.insert(at, i);
      needs += need(job, view);
      while (needs - need(view.jobs[chosen_.back()], view) >= view.capacity.count) {
        needs -= need(view.jobs[chosen_.back()], view);
        chosen_.pop_back();
      }
    }
  }

  /// The first job takes its extra SMs first: those that are `left`, then those of the last job in the order.
  void give_extra(const View& view, CapSM left, Plan& plan) const {
    for (Share& taker : plan.shares) {
      CapSM wanted = extra_;
      const auto take = [&](CapSM& from) {
        const CapSM moved = std::min(wanted, from);
        from -= moved, taker.capsm += moved, wanted -= moved;
      };
      take(left);
      for (auto giver = plan.shares.rbegin(); giver != plan.shares.rend() && &*giver != &taker; ++giver)
        if (view.jobs[giver->job].priority < view.jobs[taker.job].priority) take(giver->capsm);
    }
    std::erase_if(plan.shares, [](const Share& share) { return share.capsm.count == 0; });
  }

  static std::uint32_t need(const Job& job, const View& view) { return std::min(job.need, view.capacity).count; }

  CapSM extra_;
  std::vector<std::uint32_t> chosen_;
};
}  // namespace

MadePolicy make_hpf(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  const bool spatial = options.flag("spatial");
  const auto extra = static_cast<std::uint32_t>(options.whole("extra", 0, 0, 10000));
  if (extra > 0 && !spatial) options.complain("option extra needs spatial");
  const Time protect = read_protect(options);
  if (const auto read = options.finish(); !read) return read.error();
  if (spatial) return protect_from_starving(std::make_unique<SpatialHpf>(CapSM{extra}), protect);
  return protect_from_starving(std::make_unique<Hpf>(), protect);
}

}  // namespace gpuctl::sched
