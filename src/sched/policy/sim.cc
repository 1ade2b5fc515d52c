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
    std::make_heap(open_.begin(), open_.end(), ends_earlier);
    settled_.clear();
    while (!open_.empty()) {
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
    std::sort(settled_.begin(), settled_.end(),
              [](const Tenant& a, const Tenant& b) { return a.sequence < b.sequence; });
    for (const Tenant& tenant : settled_) plan.shares.push_back({tenant.job, CapSM{tenant.capsm}});
  }

 private:
  struct Tenant {
    std::uint32_t job, capsm;
    std::uint32_t point;  ///< index into its curve
    std::uint32_t sequence;
    double remaining;  ///< ns
  };

  /// Jobs that can still use SMs, in the order they arrived, no more than can have one each; all at their least point.
  void collect(const View& view) {
    open_.clear();
    for (std::uint32_t i = 0; i < view.jobs.size(); ++i)
      if (!view.jobs[i].tail) open_.push_back({i, 1, 0, view.jobs[i].sequence, 0});
    if (open_.size() > view.capacity.count) {
      std::nth_element(open_.begin(), open_.begin() + view.capacity.count, open_.end(),
                       [](const Tenant& a, const Tenant& b) { return a.sequence < b.sequence; });
      open_.resize(view.capacity.count);
    }
    for (Tenant& tenant : open_) tenant.remaining = remaining(view, tenant);
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
};
}  // namespace

MadePolicy make_sim(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  return finish_policy<Sim>(options, inputs.curves);
}

}  // namespace gpuctl::sched
