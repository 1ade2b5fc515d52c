// share, among jobs: the spatial policy of the slice tree as a policy for jobs, so that it can be simulated and
// compared with the others. It asks the daemon's allocator, for which each job is a client. With more jobs than SMs
// their owners take turns, as clients do.
//
// Good and bad at: see policy/share.cc.
#include <algorithm>
#include <functional>
#include <vector>

#include "sched/allocator.h"
#include "sched/policy/owners.h"
#include "sched/temporal/makers.h"

namespace gpuctl::sched {

namespace {
// Turns are so long: long beside an eviction, short beside what people notice.
constexpr Time kTurn = std::chrono::milliseconds{10};

class ShareJobs : public JobPolicy {
 public:
  explicit ShareJobs(const PolicyInputs& inputs) : slices_(inputs.slices), kept_(inputs.kept) {
    nodes_.push_back({.policy = share_});
    for (const SliceLimits& slice : slices_) add(slice);
  }

  void arrived(Job& job, Time) override {
    owners_.arrived(job);
    while (job.slice + 1 >= nodes_.size()) add({});
  }
  void left(const Job& job, Time now) override {
    charge(now);  // the latest plan is about jobs that are there
    charged_.clear();
    owners_.left(job);
  }
  void plan(const View& view, Plan& plan) override {
    charge(view.now);
    if (view.now >= turn_ends_) {
      for (const Job& job : view.jobs) Accounts::of(job).end_turn();
      end_turn(nodes_);
      turn_ends_ = view.now + kTurn;
    }
    nodes_[0].reserve = view.capacity;
    for (std::uint32_t slice = 0; kept_ && slice < slices_.size(); ++slice)
      nodes_[slice + 1].reserve = slices_[slice].reserve + kept_(slice);
    for (NodeInput& node : nodes_) node.active = false;
    for (const Job& job : view.jobs) nodes_[job.slice + 1].active = true;
    clients_.clear();
    for (const Job& job : view.jobs)
      clients_.push_back({.node = job.slice + 1,
                          .demand = job.tail ? CapSM{} : std::min(job.need, view.capacity),
                          .credit = Accounts::of(job).credit});
    allocator_.decide(nodes_, clients_, view.capacity, decision_);
    charged_.clear();
    for (std::uint32_t i = 0; i < clients_.size(); ++i) {
      const ClientDecision& client = decision_.clients[i];
      if (client.given().count > 0) plan.shares.push_back({i, client.given()});
      if (decision_.takes_turns) charged_.push_back({&Accounts::of(view.jobs[i]), client.due, client.given()});
    }
    if (decision_.takes_turns)
      plan.again = turn_ends_;
    else
      turn_ends_ = view.now + kTurn;
  }

 private:
  using Accounts = Owners<TurnAccount>;
  struct Charged {
    TurnAccount* account;
    Due due;
    CapSM given;
  };

  void add(const SliceLimits& limits) {
    nodes_.push_back({.parent = 0,
                      .reserve = limits.reserve,
                      .strict = limits.strict,
                      .max = limits.max,
                      .weight = limits.weight,
                      .policy = share_});
    decision_.nodes.resize(nodes_.size());
  }
  /// For the time since the latest decision.
  void charge(Time now) {
    const Time elapsed = std::min(now - charged_until_, 16 * kTurn);
    charged_until_ = now;
    if (charged_.empty()) return;
    for (const Charged& job : charged_) job.account->charge(job.due, job.given, elapsed, kTurn);
    sched::charge(nodes_, decision_, elapsed, kTurn);
  }

  const Policy* share_ = find_policy("share");
  std::vector<SliceLimits> slices_;
  std::function<CapSM(std::uint32_t slice)> kept_;  ///< PolicyInputs::kept
  Accounts owners_;
  std::vector<NodeInput> nodes_;  ///< slice s is node s + 1
  std::vector<ClientInput> clients_;
  std::vector<Charged> charged_;  ///< by job of the latest plan, if these took turns
  Allocator allocator_;
  Decision decision_;
  Time turn_ends_{}, charged_until_{};
};
}  // namespace

MadePolicy make_share(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  return finish_policy<ShareJobs>(options, inputs);
}

}  // namespace gpuctl::sched
