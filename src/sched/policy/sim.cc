// sim: adaptive simultaneous multi-tenancy (SiM section 3.6, Algorithm 1). Jobs run side by side. Each starts with one
// CapSM; then the job with the longest remaining time is advanced to its next point, again and again, until nothing
// more fits. The policy decides when a job arrives, leaves, or has claimed its last block-task. While there are several
// jobs it also decides every refine_ms, because more becomes known about long kernels while they run. In between all
// jobs keep what they have: decisions that follow each microsecond of progress would evict jobs for no gain.
//
// Good at: throughput with kernels that cannot use a whole device: their curves are flat, and other jobs get the rest.
// Bad at: responsiveness: all jobs are slowed down so that they end at about the same time. A short kernel beside a
// long one gets little. `floor` bounds that: each job starts with that fraction of an equal share of the device, as far
// as it can use it.
//
// Where jobs share each SM (PolicyInputs::sm), a job gets a number of workers on every SM, which is SiM's own unit.
// What fits is what the registers, warps, blocks, shared memory and barriers of an SM suffice for, so kernels that need
// different things have more room together. If not even one worker of each fits, each is given one, as in the paper.
// The hardware then starts them as room becomes free.
//
// It knows no priorities. A kernel without a curve (not yet profiled) counts as scaling perfectly up to what it can
// fill.
#include <algorithm>
#include <cmath>

#include "sched/predictor/time_curve.h"
#include "sched/residency/room.h"
#include "sched/temporal/makers.h"

namespace gpuctl::sched {

namespace {
class Sim : public JobPolicy {
 public:
  Sim(const PolicyInputs& inputs, Time refine, double floor)
      : curves_(inputs.curves),
        sm_(inputs.sm),
        blocks_(inputs.blocks),
        refine_(refine > Time{0} ? refine : kNever),
        floor_(floor) {}

  void arrived(Job&, Time) override { stale_ = true; }
  void left(const Job&, Time) override { stale_ = true; }
  void all_claimed(Job&, Time) override { stale_ = true; }

  void plan(const View& view, Plan& plan) override {
    if (stale_ || view.now >= again_ || view.capacity != capacity_) {
      allocate(view);
      stale_ = false;
      capacity_ = view.capacity;
      again_ = shares_.size() > 1 && refine_ != kNever ? view.now + refine_ : kNever;
    }
    plan.shares = shares_;
    plan.again = again_;
  }

 private:
  /// A job that can use SMs, while they are being divided.
  struct Tenant {
    std::uint32_t job, capsm;
    std::uint32_t most;   ///< CapSM that it can use
    std::uint32_t point;  ///< the first of its curve with at least `capsm`
    std::span<const CurvePoint> curve;
    /// Its remaining time divided by its curve's time for all it can fill. Without a curve: its remaining time with one
    /// CapSM.
    double scale;
    BlockShape block;  ///< only where jobs share each SM
  };
  /// The order in which tenants are advanced: a heap with the longest remaining time at the front.
  struct Entry {
    double remaining;  ///< ns
    std::uint32_t sequence, tenant;
    bool before(const Entry& other) const {
      return remaining != other.remaining ? remaining > other.remaining : sequence < other.sequence;
    }
  };

  /// Algorithm 1; fills shares_. In the paper's words, a job is marked when its entry leaves the heap.
  void allocate(const View& view) {
    collect(view);
    shares_.clear();
    for (const std::uint32_t job : found_) shares_.push_back({job, CapSM{1}});
    if (found_.size() == view.capacity.count || found_.empty()) return;  // no SM is left to advance a job
    Room room = empty_room(view);
    if (!start(view, room, floor_)) {
      room = empty_room(view);  // a floor in SMs fits
      if (!start(view, room, 0)) return;
    }
    for (std::size_t i = heap_.size() / 2; i-- > 0;) sink(i);
    while (!heap_.empty() && !room.full()) {
      Tenant& tenant = tenants_[heap_.front().tenant];
      const std::uint32_t next = next_point(tenant);
      if (next != 0 && room.change(tenant.block, CapSM{tenant.capsm}, CapSM{next})) {
        tenant.capsm = next;
        heap_.front().remaining = remaining(tenant);
      } else {
        heap_.front() = heap_.back();
        heap_.pop_back();
      }
      if (!heap_.empty()) sink(0);
    }
    for (std::size_t i = 0; i < tenants_.size(); ++i) shares_[i].capsm = CapSM{tenants_[i].capsm};
  }
  Room empty_room(const View& view) const { return sm_ ? Room(*sm_) : Room(view.capacity); }
  /// Fills tenants_ and heap_, each tenant with `floor` of an equal share of what it could have alone, and with one at
  /// least. False if that does not fit.
  bool start(const View& view, Room& room, double floor) {
    tenants_.clear();
    heap_.clear();
    const auto count = static_cast<std::uint32_t>(found_.size());
    for (const std::uint32_t job : found_) {
      const std::uint32_t whole = sm_ ? std::min(view.jobs[job].need, view.capacity).count : view.capacity.count;
      const auto part = static_cast<std::uint32_t>(std::lround(floor * whole / count));
      add(view, job, std::clamp(part, 1u, std::max(1u, whole / count)));
    }
    return std::ranges::all_of(
        tenants_, [&](const Tenant& tenant) { return room.change(tenant.block, CapSM{}, CapSM{tenant.capsm}); });
  }
  void sink(std::size_t at) {
    const Entry entry = heap_[at];
    for (std::size_t child; (child = 2 * at + 1) < heap_.size(); at = child) {
      if (child + 1 < heap_.size() && heap_[child + 1].before(heap_[child])) ++child;
      if (!heap_[child].before(entry)) break;
      heap_[at] = heap_[child];
    }
    heap_[at] = entry;
  }

  /// Fills found_ with jobs that can still use SMs. With more jobs than SMs the first to arrive are admitted (their
  /// mark is 1) and stay; when one leaves, the first of the others is admitted.
  void collect(const View& view) {
    std::uint32_t next = 0;
    find(view, next);
    while (next != kNoJob && found_.size() < view.capacity.count) {
      view.jobs[next].mark[0] = 1;
      if (found_.size() + 1 == view.capacity.count)
        found_.push_back(next), next = kNoJob;
      else
        find(view, next);
    }
    if (found_.size() > view.capacity.count) found_.resize(view.capacity.count);  // the device has shrunk
  }
  /// Fills found_ with the admitted jobs that can use SMs. `next` is the first to arrive of the waiting jobs. No branch
  /// depends on whether a job is admitted: among many waiting jobs the processor cannot predict that.
  void find(const View& view, std::uint32_t& next) {
    found_.resize(view.jobs.size());
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
    found_.resize(found);
    next = static_cast<std::uint32_t>(first);  // kNoJob if no job waits
  }
  /// The tenant starts with `least` CapSM, or as many as it can use.
  void add(const View& view, std::uint32_t index, std::uint32_t least) {
    const Job& job = view.jobs[index];
    Tenant tenant{index, 1, std::min(job.need, view.capacity).count, 0, {}, static_cast<double>(job.remaining.count()),
                  {}};
    if (sm_) tenant.block = blocks_(job);
    if (curves_) tenant.curve = curves_(job.kernel);
    if (tenant.curve.empty()) {
      tenant.scale *= job.need.count;
    } else {
      tenant.scale /= time_with(tenant.curve, job.need);
      tenant.most = std::min(tenant.most, tenant.curve.back().capsm.count);
    }
    tenant.capsm = std::min(least, tenant.most);
    if (!tenant.curve.empty())
      while (tenant.curve[tenant.point].capsm.count < tenant.capsm) ++tenant.point;
    heap_.push_back({remaining(tenant), job.sequence, static_cast<std::uint32_t>(tenants_.size())});
    tenants_.push_back(tenant);
  }
  /// CapSM of the next point; 0 if there is none.
  static std::uint32_t next_point(Tenant& tenant) {
    if (tenant.capsm >= tenant.most) return 0;
    if (tenant.curve.empty()) return tenant.capsm + 1;
    while (tenant.curve[tenant.point].capsm.count <= tenant.capsm) ++tenant.point;
    return std::min(tenant.curve[tenant.point].capsm.count, tenant.most);
  }
  /// SiM (1): the kernel's time with its CapSM, in proportion to its remaining work. A curve tells only how much longer
  /// a kernel takes than with all the SMs that it can use; that time itself is known for each launch.
  static double remaining(const Tenant& tenant) {
    if (tenant.curve.empty()) return tenant.scale / tenant.capsm;
    const CurvePoint& point = tenant.curve[tenant.point];
    const bool exact = point.capsm.count == tenant.capsm;
    return tenant.scale *
           (exact ? static_cast<double>(point.whole.count()) : time_with(tenant.curve, CapSM{tenant.capsm}));
  }

  CurveSource curves_;
  std::optional<SmLimits> sm_;
  BlockSource blocks_;
  Time refine_;
  double floor_;
  std::vector<Tenant> tenants_;
  std::vector<Entry> heap_;
  std::vector<std::uint32_t> found_;
  std::vector<Share> shares_;  ///< in force until the next allocate()
  bool stale_ = true;
  CapSM capacity_{};
  Time again_ = kNever;
};
}  // namespace

MadePolicy make_sim(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  const Time refine = options.milliseconds("refine_ms", 10, 0, 10'000);
  const double floor = options.number("floor", 0.25, 0, 1);
  return finish_policy<Sim>(options, inputs, refine, floor);
}

}  // namespace gpuctl::sched
