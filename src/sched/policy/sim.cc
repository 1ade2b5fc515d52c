// sim: adaptive simultaneous multi-tenancy (SiM section 3.6, Algorithm 1). Jobs run side by side. Each starts with the
// least point of its time curve; then the job with the longest remaining time is advanced to its next point, again and
// again, until nothing more fits. Asked again on every arrival and when a job has claimed its last block-task.
//
// Good at: throughput with kernels that cannot use a whole device: their curves are flat, and somebody else gets the
// rest. Bad at: responsiveness: everybody is slowed down so that all end at about the same time. Knows no priorities.
// Without a curve (not yet profiled) a kernel counts as scaling perfectly up to what it can fill.
#include <algorithm>

#include "sched/temporal/makers.h"

namespace gpuctl::sched {

namespace {
class Sim : public JobPolicy {
 public:
  explicit Sim(CurveSource curves) : curves_(std::move(curves)) {}

  void plan(const View& view, Plan& plan) override {
    collect(view);
    std::uint32_t used = static_cast<std::uint32_t>(open_.size());
    auto ends_earlier = [](const Tenant& a, const Tenant& b) {
      return a.remaining != b.remaining ? a.remaining < b.remaining : a.sequence > b.sequence;
    };
    settled_.clear();
    if (used == view.capacity.count) std::swap(settled_, open_);  // nothing is left to advance anybody
    for (Tenant& tenant : open_) tenant.remaining = remaining(view, tenant);
    std::make_heap(open_.begin(), open_.end(), ends_earlier);
    while (!open_.empty()) {
      if (used == view.capacity.count) break;
      std::pop_heap(open_.begin(), open_.end(), ends_earlier);
      Tenant& tenant = open_.back();
      const std::uint32_t next = next_point(view, tenant);
      if (next == 0 || used - tenant.capsm + next > view.capacity.count) {
        settled_.push_back(tenant);
        open_.pop_back();
        continue;
      }
      used += next - tenant.capsm;
      tenant.capsm = next;
      tenant.remaining = remaining(view, tenant);
      std::push_heap(open_.begin(), open_.end(), ends_earlier);
    }
    // What is left when nothing fits any more has its order too: who gets SMs first, of those that somebody gives up.
    std::sort(open_.begin(), open_.end(), [&](const Tenant& a, const Tenant& b) { return ends_earlier(b, a); });
    settled_.insert(settled_.end(), open_.begin(), open_.end());
    for (const Tenant& tenant : settled_) plan.shares.push_back({tenant.job, CapSM{tenant.capsm}});
  }

 private:
  struct Tenant {
    std::uint32_t job, capsm;
    std::uint32_t point;  ///< index into its curve
    std::uint32_t sequence;
    double remaining;  ///< ns
  };

  /// Jobs that can still use SMs, all at their least point. With more jobs than SMs the first to arrive are admitted
  /// (their mark is 1) and stay; of the others the first follows when one leaves.
  void collect(const View& view) {
    open_.clear();
    found_.resize(view.jobs.size());
    std::uint32_t next = 0;
    std::size_t found = find(view, next);
    for (std::size_t i = 0; i < found; ++i) open_.push_back({found_[i], 1, 0, view.jobs[found_[i]].sequence, 0});
    while (next != kNoJob && open_.size() < view.capacity.count) {
      view.jobs[next].mark[0] = 1;
      open_.push_back({next, 1, 0, view.jobs[next].sequence, 0});
      if (open_.size() < view.capacity.count) find(view, next);
    }
    if (open_.size() > view.capacity.count) open_.resize(view.capacity.count);  // the device has shrunk
  }
  /// Writes those that are admitted and can use SMs to found_ and returns how many; `next`: the first to arrive of
  /// those that wait. Who is admitted among many that wait looks random to a processor: no branch depends on it.
  std::size_t find(const View& view, std::uint32_t& next) {
    constexpr std::uint64_t kNone = UINT64_MAX;
    std::uint64_t first = kNone;
    std::size_t found = 0;
    for (std::uint32_t i = 0; i < view.jobs.size(); ++i) {
      const Job& job = view.jobs[i];
      const bool waits = job.mark[0] == 0;
      first = std::min(first, waits ? std::uint64_t{job.sequence} << 32 | i : kNone);
      found_[found] = i;
      found += static_cast<std::size_t>(!waits) & static_cast<std::size_t>(!job.tail);
    }
    next = static_cast<std::uint32_t>(first);  // kNoJob if there is none
    return found;
  }
  std::span<const CurvePoint> curve(const Job& job) const {
    return curves_ ? curves_(job.kernel) : std::span<const CurvePoint>{};
  }
  /// CapSM of the next point, 0 if there is none.
  std::uint32_t next_point(const View& view, Tenant& tenant) const {
    const Job& job = view.jobs[tenant.job];
    const auto points = curve(job);
    if (points.empty()) return tenant.capsm < std::min(job.need, view.capacity).count ? tenant.capsm + 1 : 0;
    while (tenant.point < points.size() && points[tenant.point].capsm.count <= tenant.capsm) ++tenant.point;
    return tenant.point < points.size() ? points[tenant.point].capsm.count : 0;
  }
  /// SiM (1): the kernel's time with so many, in proportion to what is left.
  double remaining(const View& view, const Tenant& tenant) const {
    const Job& job = view.jobs[tenant.job];
    const double left = static_cast<double>(job.remaining.count());
    const auto points = curve(job);
    if (points.empty()) return left * std::min(job.need, view.capacity).count / tenant.capsm;
    const double fraction = left / static_cast<double>(job.predicted.count());
    const auto at =
        std::find_if(points.begin(), points.end(), [&](const CurvePoint& p) { return p.capsm.count >= tenant.capsm; });
    const CurvePoint& point = at == points.end() ? points.back() : *at;
    return static_cast<double>(point.whole.count()) * fraction;
  }

  CurveSource curves_;
  std::vector<Tenant> open_, settled_;
  std::vector<std::uint32_t> found_;
};
}  // namespace

MadePolicy make_sim(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  return finish_policy<Sim>(options, inputs.curves);
}

}  // namespace gpuctl::sched
