// share, among jobs: the spatial policy of the slice tree as a policy for jobs, so that it can be simulated and
// compared with the others. It asks the daemon's allocator how much each slice gets, as if each slice had one client
// that wants what its jobs want together. It divides that among the jobs as the allocator does among clients. When
// there are many jobs, few of a slice get anything; for the others nothing but their wants is written.
//
// Good and bad at: see policy/share.cc.
#include <algorithm>
#include <utility>

#include "sched/allocator.h"
#include "sched/temporal/makers.h"

namespace gpuctl::sched {

namespace {
// With more jobs than SMs, jobs take turns of this length: long beside an eviction, short beside what people notice.
constexpr Time kTurn = std::chrono::milliseconds{10};

class ShareJobs : public JobPolicy {
 public:
  explicit ShareJobs(std::vector<SliceLimits> slices) : slices_(std::move(slices)) {}

  void arrived(Job& job, Time) override {
    if (job.slice >= slices_.size()) slices_.resize(job.slice + 1);
  }
  void plan(const View& view, Plan& plan) override {
    const auto turn = static_cast<std::uint64_t>(view.now / kTurn);
    list_wants(view);
    decide_slices(view.capacity, turn);
    parts_.resize(view.jobs.size());
    for (std::size_t s = 0; s < groups_.size(); ++s) {
      const auto [first, count, want] = groups_[s];
      if (count == 0) continue;
      const std::span<CapSM> parts{parts_.data() + first, count};
      filler_.fill(std::span{wants_}.subspan(first, count), decision_.nodes[s + 1].given, turn, parts);
    }
    share(view, plan);
    if (view.jobs.size() > plan.shares.size()) plan.again = (view.now / kTurn + 1) * kTurn;
  }

 private:
  struct Group {
    std::uint32_t first = 0, count = 0;  ///< its jobs, in wants_
    std::uint32_t want = 0;              ///< what they want together, at most the device
  };

  /// Fills wants_ and groups_. The jobs of a slice are adjacent in wants_, in the order of the view.
  void list_wants(const View& view) {
    groups_.assign(slices_.size(), {});
    wants_.resize(view.jobs.size());
    const std::uint32_t slice = view.jobs[0].slice;
    const CapSM capacity = view.capacity;
    std::uint32_t others = 0;
    std::uint64_t sum = 0;
    Claimant* next = wants_.data();
    for (const Job& job : view.jobs) {
      const CapSM want = wanted(job, capacity);
      others |= job.slice ^ slice;
      sum += want.count;
      (next++)->demand = want;
    }
    scattered_ = others != 0;
    if (scattered_)
      gather(view);
    else
      groups_[slice] = {0, static_cast<std::uint32_t>(view.jobs.size()), bounded(sum, view.capacity)};
  }
  void gather(const View& view) {
    for (const Job& job : view.jobs) ++groups_[job.slice].count;
    std::uint32_t first = 0;
    for (Group& group : groups_) {
      group.first = first;
      first += std::exchange(group.count, 0);
    }
    places_.resize(view.jobs.size());
    for (std::size_t i = 0; i < view.jobs.size(); ++i) {
      const Job& job = view.jobs[i];
      Group& group = groups_[job.slice];
      places_[i] = group.first + group.count++;
      const CapSM want = wanted(job, view.capacity);
      wants_[places_[i]].demand = want;
      group.want = bounded(std::uint64_t{group.want} + want.count, view.capacity);
    }
  }
  static CapSM wanted(const Job& job, CapSM capacity) { return job.tail ? CapSM{} : std::min(job.need, capacity); }
  static std::uint32_t bounded(std::uint64_t sum, CapSM capacity) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, capacity.count));
  }

  /// Slice s is node s + 1 of the decision.
  void decide_slices(CapSM capacity, std::uint64_t turn) {
    nodes_.assign(1, {.reserve = capacity, .policy = share_});
    clients_.clear();
    for (std::uint32_t s = 0; s < slices_.size(); ++s) {
      const SliceLimits& limits = slices_[s];
      nodes_.push_back({.parent = 0,
                        .reserve = limits.reserve,
                        .strict = limits.strict,
                        .max = limits.max,
                        .weight = limits.weight,
                        .policy = share_});
      if (groups_[s].count > 0) clients_.push_back({.node = s + 1, .demand = CapSM{groups_[s].want}});
    }
    allocator_.decide(nodes_, clients_, capacity, turn, decision_);
  }

  void share(const View& view, Plan& plan) const {
    const auto count = static_cast<std::uint32_t>(view.jobs.size());
    const std::span<const CapSM> parts = parts_;
    CapSM left = view.capacity;
    const auto give = [&](std::uint32_t job, CapSM part) {
      if (part.count == 0) return;
      plan.shares.push_back({job, part});
      left -= part;
    };
    if (scattered_)
      for (std::uint32_t i = 0; i < count && left.count > 0; ++i) give(i, parts[places_[i]]);
    else
      for (std::uint32_t i = 0; i < count && left.count > 0; ++i) give(i, parts[i]);
  }

  const Policy* share_ = find_policy("share");
  std::vector<SliceLimits> slices_;
  std::vector<Group> groups_;          ///< by slice
  std::vector<Claimant> wants_;        ///< of weight 1
  std::vector<CapSM> parts_;           ///< as wants_
  bool scattered_ = false;             ///< more than one slice has jobs
  std::vector<std::uint32_t> places_;  ///< if scattered: the place of each job in wants_
  std::vector<NodeInput> nodes_;
  std::vector<ClientInput> clients_;
  Allocator allocator_;
  Decision decision_;
  WaterFiller filler_;
};
}  // namespace

MadePolicy make_share(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  return finish_policy<ShareJobs>(options, inputs.slices);
}

}  // namespace gpuctl::sched
