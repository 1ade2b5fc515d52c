// What must hold for every workload, checked on random ones with the policies in the simulator.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "sched/allocator.h"
#include "sched/simulator/simulate.h"

namespace gpuctl::sched::properties_test {
namespace {

constexpr Time us(std::int64_t n) {
  return std::chrono::microseconds{n};
}

PolicyMaker maker(std::string text) {
  return [text](const PolicyInputs& inputs) { return std::move(*make_job_policy(text, inputs)); };
}

std::vector<std::string> all_policies() {
  std::vector<std::string> names;
  for (const Policy& row : policies()) names.emplace_back(row.name);
  names.insert(names.end(),
               {"hpf:spatial", "hpf:spatial:extra=2", "hpf:protect_ms=5", "piv:protect_ms=5", "srt:protect_ms=3"});
  return names;
}

Workload random_workload(std::uint64_t seed, bool free_preemption) {
  Random random(seed);
  Workload w;
  w.capsm = CapSM{static_cast<std::uint32_t>(1 + random.below(16))};
  w.preempt = free_preemption ? us(0) : us(static_cast<std::int64_t>(random.below(100)));
  w.gap = us(static_cast<std::int64_t>(random.below(2000)));
  w.order = random.below(2) == 0 ? Order::shuffled : Order::poisson;
  w.devices = free_preemption ? 1 : static_cast<std::uint32_t>(1 + random.below(3));
  for (std::uint64_t i = 0; i < 3 + random.below(8); ++i) {
    Application app;
    app.name = "app" + std::to_string(i);
    app.alone = us(static_cast<std::int64_t>(50 + random.below(8000)));
    app.vary = static_cast<Vary>(random.below(3));
    if (!free_preemption) app.task = us(static_cast<std::int64_t>(random.below(60)));
    app.need = CapSM{static_cast<std::uint32_t>(free_preemption ? 0 : random.below(w.capsm.count + 1))};
    app.priority = static_cast<std::int32_t>(random.below(5));
    app.weight = static_cast<std::uint32_t>(1 + random.below(4));
    app.repeat = 1 + random.below(4);
    app.think = us(static_cast<std::int64_t>(random.below(3)) * 700);
    w.applications.push_back(app);
  }
  return w;
}

std::uint64_t launches_of(const Workload& w) {
  std::uint64_t n = 0;
  for (const Application& app : w.applications) n += app.repeat;
  return n;
}

TEST(Policies, FinishEveryJobNeverFasterThanAlone) {
  for (const std::string& policy : all_policies()) {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
      const Workload w = random_workload(seed, false);
      const Outcome outcome = simulate(w, maker(policy), seed);
      ASSERT_EQ(outcome.launches.size(), launches_of(w)) << policy << " seed " << seed;
      for (const Launch& launch : outcome.launches)
        ASSERT_GE(launch.finished - launch.arrived + Time{2}, launch.alone) << policy << " seed " << seed;
    }
  }
}

TEST(Policies, GiveTheSameForTheSameSeed) {
  for (const std::string& policy : all_policies()) {
    const Workload w = random_workload(7, false);
    const Outcome a = simulate(w, maker(policy), 3), b = simulate(w, maker(policy), 3),
                  c = simulate(w, maker(policy), 4);
    ASSERT_EQ(a.launches.size(), b.launches.size());
    bool differs = false;
    for (std::size_t i = 0; i < a.launches.size(); ++i) {
      EXPECT_EQ(a.launches[i].finished, b.launches[i].finished) << policy;
      EXPECT_EQ(a.launches[i].application, b.launches[i].application) << policy;
      differs = differs || a.launches[i].finished != c.launches[i].finished;
    }
    EXPECT_TRUE(differs) << policy << " ignores the seed";
  }
}

// With free preemption, no think time, and jobs that fill the device, the device is busy whenever there is work. So
// every policy ends at the same instant as first come, first served.
TEST(Policies, NeverIdleWhileThereIsWork) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Workload w = random_workload(seed, true);
    for (Application& app : w.applications) app.think = Time{}, app.vary = Vary::none;
    const Time end = simulate(w, maker("fcfs"), seed).end;
    for (const std::string& policy : all_policies()) {
      const Outcome outcome = simulate(w, maker(policy), seed);
      EXPECT_NEAR(static_cast<double>(outcome.end.count()), static_cast<double>(end.count()), 1000)
          << policy << " seed " << seed;
    }
  }
}

// One long job against an endless stream of short ones that alone could fill the device.
Outcome flood(const std::string& policy, std::int32_t priority_of_flood) {
  Workload w;
  w.capsm = CapSM{4};
  w.preempt = us(20);
  w.until = us(400'000);
  Application victim;
  victim.alone = us(20'000);
  victim.start = us(0);
  Application short_one;
  short_one.alone = us(900);
  short_one.endless = true;
  short_one.start = us(10);
  short_one.priority = priority_of_flood;
  short_one.instances = 2;
  w.applications = {victim, short_one};
  return simulate(w, maker(policy), 1);
}

bool victim_ends(const Outcome& outcome) {
  return std::any_of(outcome.launches.begin(), outcome.launches.end(),
                     [](const Launch& l) { return l.application == 0; });
}

TEST(Policies, ThatAreFairStarveNobody) {
  for (const char* policy : {"ffs", "dprr", "rr", "cfs", "frs", "sim", "share"})
    EXPECT_TRUE(victim_ends(flood(policy, 0))) << policy;
}

TEST(Policies, ThatCanStarveDoNotWithProtection) {
  for (const char* policy : {"hpf", "piv", "sjf", "srt"}) {
    EXPECT_FALSE(victim_ends(flood(policy, 1)))
        << policy << ": the flood does not starve anybody, so this shows nothing";
    EXPECT_TRUE(victim_ends(flood(std::string(policy) + ":protect_ms=10", 1))) << policy;
  }
}

// `share` gives each job what the allocator gives a client of the same slice with the same demand.
TEST(Policies, ShareDividesAmongJobsAsTheAllocatorAmongClients) {
  std::uint32_t given = 0, jobs_seen = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed);
    const CapSM capacity{static_cast<std::uint32_t>(1 + random.below(140))};
    std::vector<SliceLimits> slices(1 + random.below(4));
    CapSM unreserved = capacity;
    for (SliceLimits& slice : slices) {
      slice.reserve = CapSM{static_cast<std::uint32_t>(random.below(2) * random.below(unreserved.count + 1))};
      unreserved -= slice.reserve;
      slice.strict = random.below(2) == 0;
      if (random.below(3) == 0) slice.max = CapSM{static_cast<std::uint32_t>(1 + random.below(capacity.count))};
      slice.reserve = std::min(slice.reserve, slice.max);
      slice.weight = static_cast<std::uint32_t>(1 + random.below(5));
    }
    const auto policy = make_job_policy("share", {.slices = slices}).value();
    std::vector<Job> jobs(1 + random.below(seed % 2 == 0 ? 12 : 400));
    const bool one_slice = random.below(3) == 0;
    for (Job& job : jobs) {
      job.slice = one_slice ? 0 : static_cast<std::uint32_t>(random.below(slices.size()));
      job.need = CapSM{static_cast<std::uint32_t>(1 + random.below(random.below(2) == 0 ? 3 : 200))};
      job.tail = random.below(5) == 0;
      policy->arrived(job, Time{});
    }
    Plan plan;
    policy->plan({jobs, kNoJob, capacity, Time{}}, plan);

    const Policy* share = find_policy("share");
    std::vector<NodeInput> nodes{{.reserve = capacity, .policy = share}};
    for (const SliceLimits& s : slices)
      nodes.push_back(
          {.parent = 0, .reserve = s.reserve, .strict = s.strict, .max = s.max, .weight = s.weight, .policy = share});
    std::vector<ClientInput> clients;
    for (const Job& job : jobs) {
      clients.push_back({.node = job.slice + 1, .demand = job.tail ? CapSM{} : job.need});
      nodes[job.slice + 1].active = true;
    }
    Decision decision;
    Allocator().decide(nodes, clients, capacity, decision);
    std::vector<Share> expected;
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      const CapSM part = std::min(decision.clients[i].own, clients[i].demand);
      if (part.count > 0) expected.push_back({i, part});
      given += part.count;
    }
    ASSERT_EQ(plan.shares.size(), expected.size()) << "seed " << seed;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(plan.shares[i].job, expected[i].job) << "seed " << seed;
      ASSERT_EQ(plan.shares[i].capsm, expected[i].capsm) << "seed " << seed << ", job " << expected[i].job;
    }
    jobs_seen += static_cast<std::uint32_t>(jobs.size());
  }
  EXPECT_GT(given, 10'000u);
  EXPECT_GT(jobs_seen, 100'000u);
}

}  // namespace
}  // namespace gpuctl::sched::properties_test
