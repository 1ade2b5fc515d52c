// share, among jobs: the spatial policy of the slice tree as a policy for jobs, so that it can be simulated and
// compared with the others. It asks the daemon's allocator: one node per slice, its jobs the clients.
//
// Good and bad at: see policy/share.cc.
#include <algorithm>

#include "sched/allocator.h"
#include "sched/temporal/makers.h"

namespace gpuctl::sched {

namespace {
// With more jobs than SMs they take turns. Long beside an eviction, short beside what people notice.
constexpr Time kTurn = std::chrono::milliseconds{10};

class ShareJobs : public JobPolicy {
 public:
  explicit ShareJobs(std::vector<SliceLimits> slices) : slices_(std::move(slices)) {}

  void arrived(Job& job, Time) override {
    if (job.slice >= slices_.size()) slices_.resize(job.slice + 1);
  }
  void plan(const View& view, Plan& plan) override {
    nodes_.assign(1, {.reserve = view.capacity, .policy = share_});
    for (const SliceLimits& s : slices_)
      nodes_.push_back(
          {.parent = 0, .reserve = s.reserve, .strict = s.strict, .max = s.max, .weight = s.weight, .policy = share_});
    clients_.resize(view.jobs.size());
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      const Job& job = view.jobs[i];
      clients_[i].node = job.slice + 1;
      clients_[i].demand = job.tail ? CapSM{} : job.need;
    }
    allocator_.decide(nodes_, clients_, view.capacity, static_cast<std::uint64_t>(view.now / kTurn), decision_);

    CapSM left = view.capacity;
    for (std::uint32_t i = 0; i < view.jobs.size() && left.count > 0; ++i) {
      if (decision_.clients[i].own.count == 0) continue;
      const CapSM part = std::min({decision_.clients[i].own, view.jobs[i].need, left});
      if (part.count == 0 || view.jobs[i].tail) continue;
      plan.shares.push_back({i, part});
      left -= part;
    }
    if (view.jobs.size() > plan.shares.size()) plan.again = (view.now / kTurn + 1) * kTurn;
  }

 private:
  const Policy* share_ = find_policy("share");
  std::vector<SliceLimits> slices_;
  std::vector<NodeInput> nodes_;
  std::vector<ClientInput> clients_;
  Allocator allocator_;
  Decision decision_;
};
}  // namespace

MadePolicy make_share(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  return finish_policy<ShareJobs>(options, inputs.slices);
}

}  // namespace gpuctl::sched
